import { createHash } from 'node:crypto'
import type { TuttiClient } from '@tutti/client'
import { TuttiError } from '@tutti/core'
import type { WorkspaceEntry, WorkspaceSummary } from '@tutti/proto'
import { blobIdFromBytes } from '@tutti/protocol/wire'
import { pathKey } from '@tutti/workspace'
import type { LocalWriter } from './local-writer.ts'
import type { PathState } from './path-state.ts'

/** One path of the agent's workspace, with its content: a file of ours, or a link's target. */
export interface RemotePath {
  readonly key: string
  readonly state: NonNullable<PathState>
  readonly content: string | Uint8Array
  /** The stores have lost the content. */
  readonly isLost: boolean
}

/** What of the workspace was read, and what cannot be. */
export interface ReadSummary extends Pick<WorkspaceSummary, 'offsetKey' | 'pending'> {
  /** Path keys whose content of now is in no store; a folder, with a slash behind it, stands for all that is in it. */
  readonly missing: ReadonlySet<string>
}

/** A link's target is a path. */
const maxTargetBytes = 4096

/**
 * The whole workspace as the log and the stores have it, path by path; the returned summary says at which position.
 *
 * @throws TuttiError `data_loss` when it is not what was recorded; `failed_precondition` while there is none.
 */
export async function* readRemote(
  client: TuttiClient,
  bcId: string,
  writer: LocalWriter,
  signal: AbortSignal,
): AsyncGenerator<RemotePath, ReadSummary> {
  const parts = client.agents.readWorkspace({ bcId, allowLost: true }, { signal })[Symbol.asyncIterator]()
  let next = await parts.next()
  const content = async function* (): AsyncGenerator<Uint8Array> {
    for (
      next = await parts.next();
      !next.done && next.value.part.case === 'content';
      next = await parts.next()
    )
      yield next.value.part.value
  }
  const missing = new Set<string>()
  try {
    while (!next.done) {
      const { part } = next.value
      if (part.case === 'summary') return { ...checked(part.value), missing }
      if (part.case === 'missing') {
        missing.add(pathKey(part.value.path))
        next = await parts.next()
      } else if (part.case === 'entry') yield await pathOf(part.value, content(), writer)
      else break
    }
    throw new TuttiError('unavailable', 'The server ended before it had sent everything; try again.')
  } finally {
    await parts.return?.()
  }
}

async function pathOf(
  { path, mode, lostHash }: WorkspaceEntry,
  content: AsyncIterable<Uint8Array>,
  writer: LocalWriter,
): Promise<RemotePath> {
  const key = pathKey(path)
  const isLost = lostHash.length > 0
  const digest = createHash('sha256')
  const hashed = async function* () {
    for await (const chunk of content) {
      digest.update(chunk)
      yield chunk
    }
  }
  if (mode === '040000' || isLost) {
    for await (const _ of hashed()) void _
    const state: PathState =
      mode === '040000' ? { mode } : { mode: mode as '100644', hash: blobIdFromBytes(lostHash) }
    return { key, state, content: new Uint8Array(), isLost }
  }
  const kept = mode === '120000' ? await collect(hashed()) : await writer.prepare(hashed())
  return {
    key,
    state: { mode: mode as '100644', hash: `sha256_${digest.digest('hex')}` },
    content: kept,
    isLost,
  }
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const all: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > maxTargetBytes)
      throw new TuttiError('data_loss', 'The target of a link is longer than any path.')
    all.push(chunk)
  }
  return Buffer.concat(all)
}

function checked(summary: WorkspaceSummary): WorkspaceSummary {
  const { recordedDigest: recorded, manifestDigest: read } = summary
  if (recorded === '' || recorded === read) return summary
  throw new TuttiError(
    'data_loss',
    "What the stores have of the agent's workspace is not what the log recorded.",
    {
      recorded,
      read,
    },
  )
}
