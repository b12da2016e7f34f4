import { createHash } from 'node:crypto'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { belowAny, foldersOf, TuttiError, type AgentId, type BlobId } from '@tutti/core'
import {
  ReadWorkspaceResponseSchema,
  type ReadWorkspaceRequest,
  type ReadWorkspaceResponse,
  type WorkspaceSummarySchema,
} from '@tutti/proto'
import { decodeOffset, encodeOffset } from '@tutti/protocol'
import { blobIdToBytes } from '@tutti/protocol/wire'
import { repositoryLocation } from '@tutti/store'
import {
  changedFile,
  changePath,
  foldChanges,
  manifestDigest,
  pathKey,
  type CapturedChange,
  type FileState,
  type PathState,
} from '@tutti/workspace'
import { checkLog, eventPath, findWhole, isLost, pathFields, recoverWorkspace } from '@tutti/workspace/log'

import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { mendedFiles } from '../mended-files.ts'

const pieceBytes = 256 << 10
const maxMissing = 100

type Part = NonNullable<MessageInitShape<typeof ReadWorkspaceResponseSchema>['part']>
type Summary = MessageInitShape<typeof WorkspaceSummarySchema>

/** A file that is to be sent: from a commit its hash is known when it was read. */
interface Source {
  readonly path: Uint8Array
  readonly mode: FileState['mode']
  readonly size: number
  readonly hash?: BlobId
  readonly content: AsyncIterable<Uint8Array>
}

interface EntryInit {
  readonly path: Uint8Array
  readonly mode: string
  readonly size: number
  readonly lost?: BlobId
}

/**
 * `ReadWorkspace`: the workspace of a log position from the checkpoint before it and the changes after that. Every content is hashed,
 * and the digest of all of them is beside the recorded one.
 */
export function createReadWorkspace(deps: HandlerDeps) {
  const { catalog, eventLog, mirrors, blobs, clock } = deps

  return async function* (
    request: ReadWorkspaceRequest,
    context: CallContext,
  ): AsyncGenerator<ReadWorkspaceResponse> {
    const { signal } = context
    const { owner } = callerOf(context)
    const bcId = agentIdOf(request.bcId)
    const row = await catalog.agents.get(owner, bcId, signal)
    const steps: { name: string; ms: bigint }[] = []
    let since = clock.monotonic()
    const lap = (name: string) => {
      const now = clock.monotonic()
      steps.push({ name, ms: BigInt(Math.round(now - since)) })
      since = now
    }

    const { last } = await eventLog.head(bcId, signal)
    const position = request.atOffsetKey === undefined ? last : decodeOffset(bcId, request.atOffsetKey)
    if (position > last)
      throw new TuttiError('out_of_range', `The agent's log ends before this offset.`, {
        field: 'at_offset_key',
      })
    const location = await repositoryLocation(catalog.repositories, owner, row.repository, signal)
    const recovered = await recoverWhole(location, bcId, position, signal)
    await checkLog(eventLog, bcId, { until: position }, signal)
    lap('read the log')
    const commit = recovered.commit ?? row.baseCommit
    if (!commit) {
      throw new TuttiError(
        'failed_precondition',
        'The agent has no workspace yet; wait until its first turn runs.',
        { state: row.state.status },
      )
    }
    const base = row.baseCommit || commit
    const isExpired = row.state.status === 'EXPIRED'
    const missing = [...recovered.missing]
    const { pending } = recovered
    const own = foldChanges(pending.map(({ change }) => change))
    const isReplaced = replacedBy(own)
    const all = foldChanges([...recovered.changes, ...own])
    const changes: CapturedChange[] = []
    for (const change of all) {
      const file = changedFile(change)
      if (isExpired && file && !request.allowLost && !(await blobs.has(file.hash, signal)))
        missing.push({ ...pathFields(file.path), reason: 'expired' })
      else changes.push(change)
    }
    const changed = new Set(all.map((change) => pathKey(changePath(change))))
    const states: PathState[] = []
    const links: { source: Omit<Source, 'content'>; bytes: Uint8Array }[] = []
    let bytes = 0

    async function* send(source: Source): AsyncGenerator<Part> {
      const { path, mode, size } = source
      const digest = createHash('sha256')
      const isLink = mode === '120000'
      const kept: Uint8Array[] = []
      if (!isLink) yield entryPart(source)
      for await (const chunk of source.content) {
        digest.update(chunk)
        bytes += chunk.length
        if (isLink) kept.push(chunk.slice())
        else
          for (let start = 0; start < chunk.length; start += pieceBytes)
            yield { case: 'content', value: chunk.slice(start, start + pieceBytes) }
      }
      const hash: BlobId = `sha256_${digest.digest('hex')}`
      states.push({ path, fileType: isLink ? 'symlink' : 'file', mode, size, hash })
      if (isLink) links.push({ source, bytes: Buffer.concat(kept) })
    }

    async function* parts(): AsyncGenerator<Part> {
      const isThere = (path: Uint8Array) => !changed.has(pathKey(path)) && !isReplaced(path)
      // A recovery needs the whole checkpoint.
      const only = request.verifyOnly ? () => true : isThere
      for await (const file of mendedFiles(mirrors, { location, commit: commit!, base, only }, signal))
        if (isThere(file.path)) yield* send(file)
      lap('read the checkpoint')
      for (const change of changes) {
        if (change.action === 'deleted' || isReplaced(change.state.path)) continue
        const { state } = change
        if (state.fileType === 'dir') {
          states.push(state)
          yield entryPart({ path: state.path, mode: state.mode, size: 0 })
          continue
        }
        const content = blobs.stream(state.hash, signal)
        const begun = request.allowLost ? await begin(content) : named(state, content)
        if (begun) {
          yield* send({ ...state, content: begun })
          continue
        }
        states.push(state)
        yield entryPart({ ...state, lost: state.hash })
      }
      for (const { source, bytes: target } of links) {
        yield entryPart(source)
        yield { case: 'content', value: target.slice() }
      }
      lap('read what changed after it')
      for (const path of missing)
        yield { case: 'missing', value: { path: eventPath(path).slice(), reason: path.reason } }
    }

    for await (const part of parts())
      if (!request.verifyOnly) yield create(ReadWorkspaceResponseSchema, { part })
    const digest = manifestDigest(states)
    lap('compare with the log')
    const isWhole = missing.length === recovered.missing.length
    const summary: Summary = {
      offsetKey: encodeOffset(bcId, position),
      commit,
      entries: BigInt(states.length),
      bytes: BigInt(bytes),
      replayed: BigInt(changes.length),
      manifestDigest: digest,
      // What is gone cannot be compared, nor what no sandbox has had yet.
      recordedDigest: (isWhole && pending.length === 0 && recovered.manifestDigest) || '',
      steps,
      pending: pending.map(({ commandId, change }) => ({ commandId, path: changePath(change).slice() })),
      missing: missing
        .slice(0, maxMissing)
        .map((path) => ({ path: eventPath(path).slice(), reason: path.reason })),
    }
    yield create(ReadWorkspaceResponseSchema, { part: { case: 'summary', value: summary } })
  }

  /**
   * As a recovery does it: a checkpoint that is lost is passed over, and what it had comes from the changes; going back that was cut off
   * is not half done.
   */
  async function recoverWhole(location: string, bcId: AgentId, position: number, signal: AbortSignal) {
    const lost = new Set<string>()
    const read = async () => {
      const now = await recoverWorkspace(eventLog, bcId, signal, position, lost)
      if (!now.restoring) return now
      const at = decodeOffset(bcId, now.restoring.atOffset)
      return { ...(await recoverWorkspace(eventLog, bcId, signal, at, lost)), pending: now.pending }
    }
    const recovered = await read()
    const bringBack = (commit: string) => mirrors.restore(location, commit, signal)
    await findWhole(recovered.checkpoints, bringBack, (commit) => lost.add(commit))
    return lost.size === 0 ? recovered : read()
  }
}

/** Whether what is at a path makes room for a change of the user's: it is on the way to it, or below it. */
function replacedBy(own: readonly CapturedChange[]): (path: Uint8Array) => boolean {
  const folders = new Set<string>()
  const leaves = new Set<string>()
  for (const change of own) {
    if (change.action === 'deleted') continue
    const key = pathKey(change.state.path)
    for (const folder of foldersOf(key)) folders.add(folder)
    if (change.state.fileType !== 'dir') leaves.add(key)
  }
  const isBelowLeaf = belowAny(leaves)
  return (path) => folders.has(pathKey(path)) || isBelowLeaf(pathKey(path))
}

const entryPart = ({ path, mode, size, lost }: EntryInit): Part => ({
  case: 'entry',
  value: { path: path.slice(), mode, size: BigInt(size), ...(lost && { lostHash: blobIdToBytes(lost) }) },
})

/** The content, when the store has it: what comes behind its first piece, which is mostly its end, says so. */
async function begin(content: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array> | undefined> {
  const pieces = content[Symbol.asyncIterator]()
  try {
    const ahead = [await pieces.next(), await pieces.next()]
    return (async function* () {
      try {
        for (let next = ahead.shift()!; !next.done; next = ahead.shift() ?? (await pieces.next()))
          yield next.value
      } finally {
        await pieces.return?.()
      }
    })()
  } catch (thrown) {
    if (!isLost(thrown)) throw thrown
    return undefined
  }
}

/** Which file it is, when the store has not what it needs. */
async function* named(
  { path, hash }: FileState,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* content
  } catch (thrown) {
    if (!isLost(thrown)) throw thrown
    const message = `The store has lost the content of ${pathFields(path).path} (${hash}). Put the blob back, then try again.`
    throw new TuttiError('data_loss', message, { id: hash }, thrown)
  }
}
