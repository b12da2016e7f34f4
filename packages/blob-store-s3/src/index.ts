export { createS3BlobStore, type S3BlobStore } from './s3-blob-store.ts'
export { defaultS3Limits, type S3Limits } from './s3-limits.ts'
export type { S3BlobStoreOptions } from './s3-options.ts'
