import { randomUUID } from 'node:crypto'
import { createReadStream, lstatSync, readFileSync, readlinkSync } from 'node:fs'
import type { BlobContent, TuttiClient } from '@tutti/client'
import { limits, TuttiError, type BlobId, type CrashPoint } from '@tutti/core'
import { blobIdToBytes } from '@tutti/protocol/wire'
import { pathBytes, type StatTuple } from '@tutti/workspace'
import type { LocalTree } from './local-tree.ts'
import { changedMeanwhile } from './local-writer.ts'
import type { PathState } from './path-state.ts'

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
const wholeBytes = 1 << 20
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
async function store(
  { client, tree, signal }: SendDeps,
  { key, local, stat }: LocalChange,
): Promise<string | undefined> {
  if (!local || !('hash' in local)) return undefined
  if (stat && stat.size > BigInt(limits.maxFileBytes))
    return `it is larger than ${limits.maxFileBytes} bytes; make it smaller, or add it to .gitignore`
  if (tree.blockedBy(key) !== undefined) return changedMeanwhile
  try {
    await (await client()).blobs.store(local.hash, contentOf(tree.path(key), local.mode === '120000'), signal)
    return undefined
  } catch (thrown) {
    const { code } = thrown as { code?: string }
    // Other bytes by now, or none: the next look finds what it has become.
    if (code === 'invalid_argument' || code === 'ENOENT') return changedMeanwhile
    throw thrown
  }
}

function contentOf(path: Buffer, isLink: boolean): BlobContent {
  const size = isLink ? 0 : lstatSync(path).size
  if (!isLink && size > wholeBytes) return { size, bytes: () => createReadStream(path) }
  const bytes = isLink ? readlinkSync(path, { encoding: 'buffer' }) : readFileSync(path)
  return {
    size: bytes.length,
    async *bytes() {
      yield bytes
    },
  }
}

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
