import type { BlobId } from '@tutti/core'

/** Where a blob is below the folder of its store: fanned out by the first byte of the hash. */
export const blobPath = (base: string, id: BlobId): string => `${base}/${id.slice(7, 9)}/${id}`
