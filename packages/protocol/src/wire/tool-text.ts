import { isBlobId, type BlobId } from '@tutti/core'

/** What a tool took or gave, as the wire has it: text as it is, other values as JSON, nothing as the empty text. */
export const toolText = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : (JSON.stringify(value) ?? '')

/** The blob that holds the whole value, when it was too large for the log (design §7). */
export function toolBlob(value: unknown): BlobId | undefined {
  if (value === null || typeof value !== 'object' || !('truncated' in value) || !('blobId' in value)) {
    return undefined
  }
  return typeof value.blobId === 'string' && isBlobId(value.blobId) ? value.blobId : undefined
}
