import { hash as hashOf, type Hash } from 'node:crypto'
import type { BlobId } from '@tutti/core'

/** The id of these bytes; of a text, of its UTF-8. */
export const blobIdOf = (bytes: Uint8Array | string): BlobId => `sha256_${hashOf('sha256', bytes)}`

/** The id of what this SHA-256 has been given; ends it. */
export const blobIdOfHash = (hash: Hash): BlobId => `sha256_${hash.digest('hex')}`
