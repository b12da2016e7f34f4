import { isDeepStrictEqual } from 'node:util'
import { TuttiError } from '@tutti/core'
import { changedFile, changePath, pathKey, type CapturedChange } from '@tutti/workspace'
import { contentOf } from '../content-of.ts'
import type { OutgoingCall } from '../link/caller.ts'
import type { CaptureSink, CaptureSummary } from '../port.ts'
import { fromWireChange } from '../wire-change.ts'
import { hashChecked } from './hash-checked.ts'
import { captureHead, captureSummary, reported } from './reported.ts'

/**
 * Hands a running capture to the sink. The inside takes it for done only when the sink has taken everything.
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
  const leaves = createLeaves()
  let changes = 0
  let hasState = false
  let takesState = true
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    const { change, skipped, gitState, unwritten, summary } = reported(
      captureHead,
      next.value.head,
      'a part of a capture',
    )
    if (change) {
      const captured = fromWireChange(change)
      changesInOrder(changePath(captured))
      bounded(changePath(captured))
      leaves(captured)
      changes += 1
      await receiveChange(captured, messages, sink)
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

async function receiveChange(
  change: CapturedChange,
  messages: AsyncIterator<{ head: unknown; bytes: Uint8Array }>,
  sink: CaptureSink,
): Promise<void> {
  const file = changedFile(change)
  if (!file) return sink.change(change, undefined)
  const content = hashChecked(contentOf(messages, file.size), file.hash)
  await sink.change(change, content)
  // A sink that has the blob already need not read it; what follows is found behind it all the same.
  for await (const _ of content) void _
}

/** All of a capture waits in memory until it is whole. In paths, and in bytes of them. */
const [maxPaths, maxPathBytes] = [1_000_000, 128 << 20]

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
function createLeaves(): (change: CapturedChange) => void {
  const found = new Set<string>()
  return (change) => {
    if (change.action === 'deleted') return
    const key = pathKey(change.state.path)
    for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
      if (found.has(key.slice(0, slash)))
        throw new TuttiError('data_loss', 'The agent server reported a path below one that is no folder.')
    }
    if (change.state.fileType !== 'dir') found.add(key)
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
