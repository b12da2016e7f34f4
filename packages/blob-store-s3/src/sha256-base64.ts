import type { BlobId } from '@tutti/core'

/** The hash of an id as S3 writes it. */
export const sha256Base64 = (id: BlobId): string => Buffer.from(id.slice(7), 'hex').toString('base64')
