import { randomUUID } from 'node:crypto'
import type { BlobContent, TuttiClient } from '@tutti/client'
import { limits, TuttiError, type BlobId, type CrashPoint } from '@tutti/core'
import { blobIdToBytes } from '@tutti/protocol/wire'
import { pathBytes, readStableFile, readStableLink, type StatTuple } from '@tutti/workspace'
import type { LocalTree } from './local-tree.ts'
import { changedMeanwhile } from './local-writer.ts'
import type { PathState } from './path-state.ts'
import { readChunks } from './read-chunks.ts'

/** A path of the folder that goes to the agent. */
export interface LocalChange {
  readonly key: string
  readonly local: PathState
  readonly stat: StatTuple | undefined
  /** What it was made from. */
  readonly base: BlobId | undefined
  /** What it wins over, in words; absent when the agent had not changed it. */
  readonly won?: string
}

/** What was sent together, and the position at which the agent's log has it. */
export interface SentChanges {
  readonly offsetKey: string
  readonly files: readonly LocalChange[]
  /** Paths that were not sent, and why. */
  readonly skipped: ReadonlyMap<string, string>
}

export interface SendDeps {
  readonly client: () => Promise<TuttiClient>
  readonly bcId: string
  readonly tree: LocalTree
  readonly crashPoint: CrashPoint
  readonly signal: AbortSignal
}

const [filesAtOnce, uploadsAtOnce] = [500, 4]
/** Up to here a content is read before it is sent. */
const wholeBytes = 1n << 20n
const retryMs = 500

/** Contents first, then the paths that name them: what is in the log is in the store. What is deleted makes room first. */
export async function* sendChanges(
  deps: SendDeps,
  changes: readonly LocalChange[],
): AsyncGenerator<SentChanges> {
  const { crashPoint } = deps
  const ordered = changes.toSorted(deletedFirst)
  for (let start = 0; start < ordered.length; start += filesAtOnce) {
    const skipped = new Map<string, string>()
    const queue = ordered.slice(start, start + filesAtOnce)
    const files: LocalChange[] = []
    const upload = async () => {
      for (let change = queue.shift(); change; change = queue.shift()) {
        const sent = change
        const problem = await crashPoint('sync.blob', () => store(deps, sent))
        if (problem === undefined) files.push(change)
        else skipped.set(change.key, problem)
      }
    }
    await Promise.all(Array.from({ length: uploadsAtOnce }, upload))
    files.sort(deletedFirst)
    const offsetKey = files.length > 0 ? await crashPoint('sync.file_sync', () => append(deps, files)) : ''
    yield { offsetKey, files, skipped }
  }
}

const deletedFirst = (left: LocalChange, right: LocalChange): number =>
  Number(left.local !== undefined) - Number(right.local !== undefined)

/** Why the content cannot be sent now; undefined when the store has it. */
async function store({ client, tree, signal }: SendDeps, change: LocalChange): Promise<string | undefined> {
  const { local, stat } = change
  if (!local || !('hash' in local)) return undefined
  if (stat && stat.size > BigInt(limits.maxFileBytes))
    return `it is larger than ${limits.maxFileBytes} bytes; make it smaller, or add it to .gitignore`
  try {
    await (await client()).blobs.store(local.hash, contentOf(tree, change), signal)
    return undefined
  } catch (thrown) {
    // The next look finds what it has become.
    if (thrown instanceof TuttiError && thrown.code === 'invalid_argument') return changedMeanwhile
    throw thrown
  }
}

/** @throws TuttiError `invalid_argument`, as the server does for other bytes, when something else is there than was looked at */
function contentOf(tree: LocalTree, { key, local, stat }: LocalChange): BlobContent {
  const path = tree.path(key)
  try {
    if (tree.blockedBy(key) !== undefined) throw new Error('not in the folder')
    const size = stat?.size ?? 0n
    if (size > wholeBytes) return { size: Number(size), bytes: () => largeContent(path, Number(size)) }
    const isLink = local?.mode === '120000'
    const { bytes } = isLink ? readStableLink(path) : readStableFile(path, Number(wholeBytes))
    return {
      size: bytes.length,
      async *bytes() {
        yield bytes
      },
    }
  } catch (error) {
    throw otherBytes(error)
  }
}

async function* largeContent(path: Buffer, size: number): AsyncGenerator<Uint8Array> {
  let length = 0
  try {
    for await (const chunk of readChunks(path, size)) {
      length += chunk.length
      yield chunk
    }
  } catch (error) {
    throw otherBytes(error)
  }
  // The server would wait for the rest.
  if (length < size) throw otherBytes()
}

const otherBytes = (cause?: unknown) => new TuttiError('invalid_argument', changedMeanwhile, {}, cause)

/** Under one key, however often it takes: an answer that is lost changes nothing. */
async function append({ client, bcId, signal }: SendDeps, changes: readonly LocalChange[]): Promise<string> {
  const idempotencyKey = randomUUID()
  const files = changes.map(({ key, local, base }) => ({
    path: Uint8Array.from(pathBytes(key)),
    mode: local?.mode ?? '',
    ...(local && 'hash' in local && { hash: blobIdToBytes(local.hash) }),
    ...(base && { baseHash: blobIdToBytes(base) }),
  }))
  for (;;) {
    try {
      const { offsetKey } = await (
        await client()
      ).agents.fileSync({ bcId, files, idempotencyKey }, { signal })
      return offsetKey
    } catch (thrown) {
      if (signal.aborted || !(thrown instanceof TuttiError) || thrown.code !== 'unavailable') throw thrown
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }
}
