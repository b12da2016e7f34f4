export type { BlobStore, ByteRange } from './port.ts'
