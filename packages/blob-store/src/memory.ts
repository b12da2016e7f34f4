import { throwIfCancelled, type BlobId } from '@tutti/core'
import { abortableSource } from './abortable-source.ts'
import { blobIdOf } from './blob-id.ts'
import { checkRead, notFound } from './blob-errors.ts'
import { inParallel } from './in-parallel.ts'
import type { BlobStore, ByteRange } from './port.ts'

/** Blobs in this process's memory, for tests. Durable as long as the process. */
export function createMemoryBlobStore(): BlobStore {
  const blobs = new Map<BlobId, Uint8Array>()
  const storedAt = new Map<BlobId, number>()

  function read(id: BlobId, signal: AbortSignal, range?: ByteRange): Uint8Array {
    throwIfCancelled(signal)
    checkRead(id, range)
    const bytes = blobs.get(id)
    if (!bytes) throw notFound(id)
    // A copy: nobody may change a blob.
    return bytes.slice(range?.start, range?.end)
  }

  const store: BlobStore = {
    async put(bytes, signal) {
      const chunks: Uint8Array[] = []
      for await (const chunk of abortableSource(bytes, signal)) chunks.push(chunk.slice())
      const whole = Buffer.concat(chunks)
      const id = blobIdOf(whole)
      blobs.set(id, new Uint8Array(whole))
      storedAt.set(id, Date.now())
      return id
    },

    putAll: (contents, signal) => inParallel(contents, 1, (bytes) => store.put(bytes, signal)),

    async *stream(id, signal, range) {
      const bytes = read(id, signal, range)
      if (bytes.length > 0) yield bytes
    },

    async get(id, signal, range) {
      return read(id, signal, range)
    },

    getAll: (ids, signal) => inParallel(ids, 1, (id) => store.get(id, signal)),

    async has(id, signal) {
      throwIfCancelled(signal)
      checkRead(id, undefined)
      return blobs.has(id)
    },

    async size(id, signal) {
      return read(id, signal).length
    },

    async *list(signal) {
      for (const [id, { length }] of blobs) {
        throwIfCancelled(signal)
        yield { id, size: length, storedAt: storedAt.get(id)! }
      }
    },

    async remove(id, signal) {
      throwIfCancelled(signal)
      checkRead(id, undefined)
      blobs.delete(id)
    },
  }
  return store
}
