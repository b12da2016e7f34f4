import { repositoryLocation } from '@tutti/store'
import type { HandlerDeps } from './handler.ts'
import { textPieces } from './follow-log.ts'

/** More than a person reads; the mirror says so in the last line where it cuts. */
const maxDiffBytes = 32 << 20

export interface DiffPiece {
  readonly baseCommit?: string
  readonly commit?: string
  readonly filesChanged?: number
  readonly patch?: Uint8Array
}

/** A patch in pieces; the first one has the header fields. */
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
  const mirror = await mirrors.attach(
    await repositoryLocation(catalog.repositories, owner, repository, signal),
    signal,
  )
  const filesChanged = await mirror.countChanges(baseCommit, commit, signal)
  yield { baseCommit, commit, filesChanged }
  if (filesChanged === 0) return
  for (const patch of textPieces(await mirror.diff(baseCommit, commit, maxDiffBytes, signal))) yield { patch }
}
