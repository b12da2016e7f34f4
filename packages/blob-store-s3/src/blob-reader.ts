import { createHash } from 'node:crypto'
import { TuttiError, cancelledBy, throwIfCancelled, type BlobId } from '@tutti/core'
import type { BlobStore, ByteRange } from '@tutti/blob-store'
import { blobIdOfHash, checkRead, notFound } from '@tutti/blob-store/adapter'
import { objectChunks } from './object-chunks.ts'
import { retry } from './retry.ts'
import { s3Error } from './s3-error.ts'
import { loggableCause, s3Failure } from './s3-failure.ts'
import type { S3Objects, StoredObject } from './s3-objects.ts'
import type { S3Settings } from './s3-settings.ts'

/** Everything came, and it is not what the id says. */
class WrongBytes extends Error {}

/**
 * Reads blobs. Wrong bytes are read a second time before they are called lost: what a network damages is whole in the store, and
 * nobody shall look for a backup then.
 */
export function createBlobReader(
  objects: S3Objects,
  settings: S3Settings,
): Required<Pick<BlobStore, 'stream' | 'get' | 'has' | 'size' | 'uploadedWith'>> {
  const { bucket, where, keyOf, limits } = settings

  async function* read(id: BlobId, signal: AbortSignal, range?: ByteRange): AsyncGenerator<Uint8Array> {
    throwIfCancelled(signal)
    checkRead(id, range)
    // No range of S3 is empty; one byte tells whether there is such a blob.
    const nothing = range?.start === range?.end && range !== undefined
    const part = nothing ? { start: 0, end: 1 } : { start: range?.start ?? 0, end: range?.end }
    const hash = range ? undefined : createHash('sha256')
    try {
      for await (const chunk of objectChunks(objects, limits, { key: keyOf(id), ...part }, signal)) {
        if (nothing) return
        hash?.update(chunk)
        yield chunk
      }
    } catch (error) {
      throw explain(error, id, signal)
    }
    if (hash && blobIdOfHash(hash) !== id) throw new WrongBytes()
  }

  function explain(error: unknown, id: BlobId, signal: AbortSignal): TuttiError {
    if (signal.aborted) return cancelledBy(signal)
    const { status, name } = s3Failure(error)
    return status === 404 && name !== 'NoSuchBucket'
      ? notFound(id, loggableCause(error))
      : s3Error(error, settings)
  }

  const lost = (id: BlobId) =>
    new TuttiError(
      'data_loss',
      `Blob ${id} is damaged in bucket "${bucket}" at ${where}. Put object ${keyOf(id)} back from a backup; where there is none, delete it, so that its content can be stored again.`,
      { id, bucket, endpoint: where, key: keyOf(id) },
    )

  async function collect(id: BlobId, signal: AbortSignal, range?: ByteRange): Promise<Uint8Array> {
    const chunks: Uint8Array[] = []
    for await (const chunk of read(id, signal, range)) chunks.push(chunk)
    return new Uint8Array(Buffer.concat(chunks))
  }

  const whenWrong = async <T>(error: unknown, id: BlobId, again: () => Promise<T>): Promise<T> => {
    if (!(error instanceof WrongBytes)) throw error
    return again().catch((second: unknown) => {
      throw second instanceof WrongBytes ? lost(id) : second
    })
  }

  /** Undefined when there is none. */
  async function inspect(id: BlobId, signal: AbortSignal): Promise<StoredObject | undefined> {
    throwIfCancelled(signal)
    checkRead(id, undefined)
    try {
      return await objects.inspect(keyOf(id), signal)
    } catch (error) {
      throw explain(error, id, signal)
    }
  }

  const reader: ReturnType<typeof createBlobReader> = {
    async *stream(id, signal, range) {
      try {
        yield* read(id, signal, range)
      } catch (error) {
        await whenWrong(error, id, async () => {
          for await (const _ of read(id, signal));
        })
        throw new TuttiError(
          'unavailable',
          `Blob ${id} was damaged on its way from ${where}. Read it again; where this happens often, use https.`,
          { id, reason: 'damaged_in_transit', bucket, endpoint: where },
        )
      }
    },

    get: (id, signal, range) =>
      collect(id, signal, range).catch((error: unknown) =>
        whenWrong(error, id, () => collect(id, signal, range)),
      ),

    async has(id, signal) {
      throwIfCancelled(signal)
      checkRead(id, undefined)
      try {
        // Not HEAD: its answer has no body that would tell a missing bucket from a missing object.
        await retry(limits, signal, async () => {
          const opened = await objects.open(keyOf(id), 0, 1, signal)
          // To its end, so that the connection can be used again.
          if (opened && opened.length <= 1) for await (const _ of opened.chunks);
          else await opened?.chunks.return(undefined)
        })
        return true
      } catch (error) {
        const told = explain(error, id, signal)
        if (told.code === 'not_found') return false
        throw told
      }
    },

    async size(id, signal) {
      const found = await inspect(id, signal)
      if (found) return found.size
      // Its answer has no body: a missing bucket looks like a missing object, and this tells them apart.
      await reader.has(id, signal)
      throw notFound(id)
    },

    uploadedWith: async (id, proof, signal) => (await inspect(id, signal))?.proof === proof,
  }
  return reader
}
