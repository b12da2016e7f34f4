export { blobIdOf } from './blob-id.ts'
export type { BlobStore, ByteRange, SignedRequest } from './port.ts'
export { createFilesystemBlobStore } from './filesystem.ts'
export { createMemoryBlobStore } from './memory.ts'
