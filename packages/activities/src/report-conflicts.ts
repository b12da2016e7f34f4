import type { BlobId } from '@tutti/core'
import type { BlobStore } from '@tutti/blob-store'
import type { Conflict } from '@tutti/git'

/** The conflicts that a combination left, as `combine` stored them. */
export async function loadConflicts(
  blobs: BlobStore,
  id: BlobId | undefined,
  signal: AbortSignal,
): Promise<Conflict[]> {
  if (!id) return []
  return JSON.parse(new TextDecoder().decode(await blobs.get(id, signal))) as Conflict[]
}
