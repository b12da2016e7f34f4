import { cancelledBy, throwIfCancelled } from '@tutti/core'
import type { Archive } from '@tutti/blob-store'
import { archiveNotFound, checkName } from '@tutti/blob-store/adapter'
import type { BlobWriter } from './blob-writer.ts'
import { objectChunks } from './object-chunks.ts'
import { s3Error } from './s3-error.ts'
import { loggableCause, s3Failure } from './s3-failure.ts'
import type { S3Objects } from './s3-objects.ts'
import type { S3Settings } from './s3-settings.ts'
import { spool } from './spooled-blob.ts'

/** The archive as objects of the bucket, each with its name behind the store's prefix as its key. Puts are checked as those of blobs are. */
export function createS3Archive(objects: S3Objects, write: BlobWriter, settings: S3Settings): Archive {
  const { limits, prefix: folder, temporaryFolder } = settings
  const keyOf = (name: string, signal: AbortSignal): string => {
    throwIfCancelled(signal)
    checkName(name)
    return folder + name
  }
  const explain = (error: unknown, signal: AbortSignal) =>
    signal.aborted ? cancelledBy(signal) : s3Error(error, settings)

  return {
    async put(name, bytes, signal) {
      const key = keyOf(name, signal)
      const blob = await spool(bytes, signal, { folder: temporaryFolder, memoryBytes: limits.memoryBytes })
      try {
        await write(key, blob, signal)
      } finally {
        await blob.close()
      }
    },

    async has(name, signal) {
      const key = keyOf(name, signal)
      return objects.inspect(key, signal).then(
        (found) => found !== undefined,
        (error: unknown) => {
          throw explain(error, signal)
        },
      )
    },

    async *stream(name, signal) {
      const key = keyOf(name, signal)
      try {
        yield* objectChunks(objects, limits, { key, start: 0, end: undefined }, signal)
      } catch (error) {
        const { status, name: code } = s3Failure(error)
        if (!signal.aborted && status === 404 && code !== 'NoSuchBucket')
          throw archiveNotFound(name, loggableCause(error))
        throw explain(error, signal)
      }
    },

    async *list(prefix, signal) {
      throwIfCancelled(signal)
      try {
        for await (const { key } of objects.list(folder + prefix, signal)) yield key.slice(folder.length)
      } catch (error) {
        throw explain(error, signal)
      }
    },
  }
}
