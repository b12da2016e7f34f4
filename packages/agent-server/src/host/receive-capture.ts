import { isDeepStrictEqual } from 'node:util'
import { createHash } from 'node:crypto'
import { belowAny, limits, pathProblem, TuttiError, type BlobId } from '@tutti/core'
import { changedFile, changePath, pathKey, type CapturedChange } from '@tutti/workspace'
import { contentOf, contentUntilEnd } from '../content-of.ts'
import type { CallMessage } from '../link/call.ts'
import type { OutgoingCall } from '../link/caller.ts'
import type { CaptureSink, CaptureSummary } from '../port.ts'
import { fromWireChange, type WireChange } from '../wire-change.ts'
import { hashChecked } from './hash-checked.ts'
import { captureHead, captureSummary, maxSkippedPathBytes, reported } from './reported.ts'

/**
 * Hands a running capture to the sink. The inside takes it for done only when the sink has taken everything. A change of a path that nobody
 * may write is refused by itself: to the sink it is skipped.
 *
 * @param given keys of the paths that were to be written, of which each may be told of as not written
 * @param onWhole called when all of it is here: from then on giving up would leave the inside in doubt of what was taken
 * @throws TuttiError `data_loss` for what no capture can find; the sink has then only what came before it.
 */
export async function receiveCapture(
  call: OutgoingCall,
  sink: CaptureSink,
  onWhole: () => void = () => {},
  given: Set<string> = new Set(),
): Promise<CaptureSummary> {
  const messages = call.messages[Symbol.asyncIterator]()
  const changesInOrder = createOrder()
  const skippedInOrder = createOrder()
  const bounded = createBound()
  const isBelowLeaf = createLeaves()
  const ahead = new Map<BlobId, number>()
  let changes = 0
  let hasState = false
  let takesState = true
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    const { content, change, skipped, gitState, unwritten, summary } = reported(
      captureHead,
      next.value.head,
      'a part of a capture',
    )
    if (content) {
      bounded(noPath)
      const { hash, size } = await receiveContent(messages, sink)
      ahead.set(hash, size)
    } else if (change) {
      const captured = fromWireChange(change)
      const path = changePath(captured)
      bounded(path)
      changes += 1
      const isUnsafe = pathProblem(path) !== undefined
      if (!isUnsafe) changesInOrder(path)
      if (isUnsafe || isBelowLeaf(captured)) await refuseChange(captured, change, messages, sink)
      else await receiveChange(captured, change, ahead, messages, sink)
    } else if (skipped) {
      const path = Buffer.from(skipped.path, 'base64')
      skippedInOrder(path)
      bounded(path)
      await sink.skipped(path, skipped.reason, skipped.size)
    } else if (gitState) {
      if (hasState) throw contradiction()
      hasState = true
      const pack = contentOf(messages, gitState.size)
      takesState = await sink.gitState(gitState, pack)
      for await (const _ of pack) void _
    } else if (unwritten) {
      const path = Buffer.from(unwritten.path, 'base64')
      if (!sink.unwritten || changes > 0 || !given.delete(pathKey(path))) throw contradiction()
      sink.unwritten(path, unwritten.code)
    } else {
      if (summary?.changes !== changes) throw contradiction()
      onWhole()
      await sink.committed(summary)
      await call.send(takesState ? 'commit' : 'commit_without_state')
      const result = reported(captureSummary, await call.result, 'a summary')
      if (!isDeepStrictEqual(result, summary)) throw contradiction()
      return result
    }
  }
  await call.result
  throw new TuttiError('data_loss', 'The agent server reported a capture without a summary.')
}

type Messages = AsyncIterator<CallMessage>

async function receiveContent(
  messages: Messages,
  sink: CaptureSink,
): Promise<{ readonly hash: BlobId; readonly size: number }> {
  const digest = createHash('sha256')
  let size = 0
  const hashed = async function* () {
    for await (const chunk of contentUntilEnd(messages)) {
      size += chunk.length
      if (size > limits.maxFileBytes)
        throw new TuttiError('data_loss', 'The agent server reported a file that is larger than any may be.')
      digest.update(chunk)
      yield chunk
    }
  }
  const content = hashed()
  await sink.content(content)
  for await (const _ of content) void _
  return { hash: `sha256_${digest.digest('hex')}`, size }
}

async function refuseChange(
  change: CapturedChange,
  { ahead }: WireChange,
  messages: Messages,
  sink: CaptureSink,
): Promise<void> {
  const size = changedFile(change)?.size
  if (size !== undefined && !ahead) for await (const _ of contentOf(messages, size)) void _
  await sink.skipped(changePath(change).subarray(0, maxSkippedPathBytes), 'unsafe_name', size)
}

async function receiveChange(
  change: CapturedChange,
  wire: WireChange,
  ahead: ReadonlyMap<BlobId, number>,
  messages: Messages,
  sink: CaptureSink,
): Promise<void> {
  const file = changedFile(change)
  if (!file) return sink.change(change, undefined)
  if (wire.ahead) {
    if (ahead.get(file.hash) !== file.size)
      throw new TuttiError('data_loss', 'The agent server reported a file whose content never came.')
    return sink.change(change, undefined)
  }
  const content = hashChecked(contentOf(messages, file.size), file.hash)
  await sink.change(change, content)
  // A sink that has the blob already need not read it; what follows is found behind it all the same.
  for await (const _ of content) void _
}

/** All of a capture waits in memory until it is whole. In paths, and in bytes of them. */
const [maxPaths, maxPathBytes] = [1_000_000, 128 << 20]

const noPath = new Uint8Array()

function createBound(): (path: Uint8Array) => void {
  let paths = 0
  let bytes = 0
  return (path) => {
    paths += 1
    bytes += path.length
    if (paths > maxPaths || bytes > maxPathBytes)
      throw new TuttiError('data_loss', 'The agent server reported more paths than a workspace can have.')
  }
}

/** Nothing is written below a file or link of the same capture: nobody could make that. */
function createLeaves(): (change: CapturedChange) => boolean {
  const found = new Set<string>()
  const isBelow = belowAny(found)
  return (change) => {
    if (change.action === 'deleted') return false
    const key = pathKey(change.state.path)
    if (isBelow(key)) return true
    if (change.state.fileType !== 'dir') found.add(key)
    return false
  }
}

/** Paths come in the order of their bytes, so that each comes once. */
function createOrder(): (path: Uint8Array) => void {
  let last: Uint8Array = new Uint8Array()
  return (path) => {
    if (Buffer.compare(path, last) <= 0) {
      throw new TuttiError('data_loss', 'The agent server reported a path twice or out of order.')
    }
    last = path
  }
}

const contradiction = () =>
  new TuttiError('data_loss', 'The agent server reported a summary that is not that of its capture.')
