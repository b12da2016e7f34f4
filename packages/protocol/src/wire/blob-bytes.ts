import { TuttiError, isBlobId, type BlobId } from '@tutti/core'

/** The 32 raw bytes that a blob id is on the wire (design §11.6). */
export function blobIdToBytes(id: BlobId): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: 32 }, (_, index) =>
    Number.parseInt(id.slice(7 + index * 2, 9 + index * 2), 16),
  )
}

/** @throws TuttiError `invalid_argument` for anything but 32 bytes. */
export function blobIdFromBytes(bytes: Uint8Array, field = 'blob_id'): BlobId {
  const id = `sha256_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`
  if (isBlobId(id)) return id
  throw new TuttiError('invalid_argument', `${field} must be the 32 bytes of a sha256.`, { field })
}
