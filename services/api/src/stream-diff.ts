import { limits, TuttiError } from '@tutti/core'
import { repositoryLocation } from '@tutti/store'
import type { HandlerDeps } from './handler.ts'

/** More than a person reads. */
const maxDiffBytes = 32 << 20
/** Well under the limit of a message. */
const pieceBytes = limits.maxMessageBytes >> 3

export interface DiffPiece {
  readonly baseCommit?: string
  readonly commit?: string
  readonly filesChanged?: number
  readonly patch?: Uint8Array
}

/**
 * A patch in pieces, byte for byte; the first one has the header fields.
 *
 * @throws TuttiError `resource_exhausted` after the first 32 MiB of a patch that is longer, so that nobody takes them for the whole.
 */
export async function* streamDiff(
  { catalog, mirrors }: Pick<HandlerDeps, 'catalog' | 'mirrors'>,
  {
    owner,
    repository,
    baseCommit,
    commit,
  }: { owner: string; repository: string; baseCommit: string; commit: string },
  signal: AbortSignal,
): AsyncGenerator<DiffPiece> {
  const location = await repositoryLocation(catalog.repositories, owner, repository, signal)
  const mirror = await mirrors.restore(location, commit, signal)
  const filesChanged = await mirror.countChanges(baseCommit, commit, signal)
  yield { baseCommit, commit, filesChanged }
  if (filesChanged === 0) return
  const { patch, cut } = await mirror.diff(baseCommit, commit, maxDiffBytes, signal)
  for (let start = 0; start < patch.byteLength; start += pieceBytes)
    yield { patch: patch.subarray(start, start + pieceBytes) }
  if (!cut) return
  throw new TuttiError(
    'resource_exhausted',
    `The patch is longer than ${maxDiffBytes} bytes. Deliver the work and fetch its branch, or let git compare ${baseCommit} with ${commit} there.`,
    { limit: maxDiffBytes, base_commit: baseCommit, commit },
  )
}
