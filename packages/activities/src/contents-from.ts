import type { HydrateRequest } from '@tutti/agent-server'
import type { BlobStore } from '@tutti/blob-store'

/** The contents of changes, as the store has them. */
export const contentsFrom = (
  blobs: BlobStore,
  signal: AbortSignal,
): Required<Pick<HydrateRequest, 'contentOf' | 'contentsOf'>> => ({
  contentOf: (hash) => blobs.stream(hash, signal),
  contentsOf: (hashes) => blobs.getAll(hashes, signal),
})
