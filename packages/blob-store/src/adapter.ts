/** What adapters in packages of their own share with those beside the port. */
export { abortableSource } from './abortable-source.ts'
export { archiveNotFound, checkName, checkRead, notFound } from './blob-errors.ts'
export { blobIdOfHash } from './blob-id.ts'
export { inParallel } from './in-parallel.ts'
