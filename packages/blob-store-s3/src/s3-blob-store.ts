import type { Archive, BlobStore } from '@tutti/blob-store'
import { checkRead, inParallel } from '@tutti/blob-store/adapter'
import { cancelledBy, isBlobId, noCrashPoints, throwIfCancelled } from '@tutti/core'
import { abortAbandonedUploads } from './abandoned-uploads.ts'
import { createBlobReader } from './blob-reader.ts'
import { createBlobWriter } from './blob-writer.ts'
import { createMultipartUploads } from './multipart-uploads.ts'
import { createS3Archive } from './s3-archive.ts'
import { createS3Client } from './s3-client.ts'
import { s3Error } from './s3-error.ts'
import { createS3Objects } from './s3-objects.ts'
import type { S3BlobStoreOptions } from './s3-options.ts'
import { s3Settings } from './s3-settings.ts'
import { createSignedRequests } from './signed-requests.ts'
import { signPayloadHash } from './sign-payload-hash.ts'
import { createSlots } from './slots.ts'
import { spool } from './spooled-blob.ts'

export interface S3BlobStore extends Required<BlobStore> {
  /** What is kept for ever, in the same bucket. */
  readonly archive: Archive
  /** Gives its connections up. Not needed for a process to end. */
  close(): void
}

/**
 * Blobs as objects `files/sha256_<hex>` of a bucket, and the archive beside them; many stores may share it. Every put carries its SHA-256, and nothing is under a
 * name before the server has checked all of it; every whole blob is hashed when it is read. Failures that may pass are tried again for
 * `limits.patienceMs`; then, and for any other failure of the store, the error is `unavailable`, with the reason and what to do.
 *
 * A range is not hashed: over plain http nothing tells that a network has changed it.
 *
 * @throws TuttiError `invalid_argument` for an option that cannot be; the server is not asked yet.
 */
export function createS3BlobStore(options: S3BlobStoreOptions): S3BlobStore {
  const settings = s3Settings(options)
  const { limits, temporaryFolder: folder } = settings
  const { crashPoint = noCrashPoints } = options
  const client = createS3Client(settings, settings.endpoint)
  signPayloadHash(client)
  const signer = createS3Client(settings, settings.publicEndpoint ?? settings.endpoint)
  const slots = createSlots(limits.parallelParts)
  const objects = createS3Objects(client, settings)
  const write = createBlobWriter(
    objects,
    createMultipartUploads(client, slots, settings, crashPoint),
    slots,
    settings,
  )

  const closed = new AbortController()
  let looked = false
  /** Those who store no large blobs leave no uploads either. */
  const lookForAbandoned = () => {
    if (looked) return
    looked = true
    abortAbandonedUploads(client, settings, closed.signal).catch(() => {})
  }

  const store: S3BlobStore = {
    ...createBlobReader(objects, settings),
    ...createSignedRequests(signer, settings),

    async put(bytes, signal) {
      throwIfCancelled(signal)
      const blob = await spool(bytes, signal, { folder, memoryBytes: limits.memoryBytes })
      try {
        await crashPoint('blob.put', () => write(settings.keyOf(blob.id), blob, signal))
        if (blob.size > limits.singlePutBytes) lookForAbandoned()
        return blob.id
      } finally {
        await blob.close()
      }
    },

    // Not every server lets them be listed.
    removeLeftovers: (signal) => abortAbandonedUploads(client, settings, signal).catch(() => {}),

    putAll: (contents, signal) =>
      inParallel(contents, limits.parallelSmall, (bytes) => store.put(bytes, signal)),

    getAll: (ids, signal) => inParallel(ids, limits.parallelSmall, (id) => store.get(id, signal)),

    async *list(signal) {
      try {
        for await (const { key, size, storedAt } of objects.list(settings.folder, signal)) {
          const id = key.slice(settings.folder.length)
          if (isBlobId(id)) yield { id, size, storedAt }
        }
      } catch (error) {
        throw signal.aborted ? cancelledBy(signal) : s3Error(error, settings)
      }
    },

    async remove(id, signal) {
      throwIfCancelled(signal)
      checkRead(id, undefined)
      await objects.remove(settings.keyOf(id), signal).catch((error: unknown) => {
        throw signal.aborted ? cancelledBy(signal) : s3Error(error, settings)
      })
    },

    archive: createS3Archive(objects, write, settings),

    close() {
      closed.abort()
      client.destroy()
      signer.destroy()
    },
  }
  return store
}
