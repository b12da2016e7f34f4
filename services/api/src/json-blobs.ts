import { blobIdOf, type BlobStore } from '@tutti/blob-store'
import { TuttiError, type BlobId } from '@tutti/core'
import type { BlobRefCatalog } from '@tutti/store'
import { LRUCache } from 'lru-cache'

/** Small JSON values as blobs, and the texts of prompts. Blobs never change, so what was read once is kept. */
export interface JsonBlobs {
  /** Stores the value; the owner may read it from then on. */
  put(owner: string, value: unknown, signal: AbortSignal): Promise<BlobId>
  putText(owner: string, text: string, signal: AbortSignal): Promise<BlobId>
  /** @throws TuttiError `data_loss` when it is gone or not JSON. */
  get<T extends object>(id: BlobId, signal: AbortSignal): Promise<T>
  getText(id: BlobId, signal: AbortSignal): Promise<string>
}

/** Agents of one ensemble share a configuration, so a few hundred serve any list. */
const keptValues = 500

export function createJsonBlobs({
  blobs,
  blobRefs,
}: {
  blobs: BlobStore
  blobRefs: BlobRefCatalog
}): JsonBlobs {
  const kept = new LRUCache<BlobId, object>({ max: keptValues })
  const jsonBlobs: JsonBlobs = {
    put: (owner, value, signal) => jsonBlobs.putText(owner, JSON.stringify(value), signal),
    async putText(owner, text, signal) {
      const bytes = new TextEncoder().encode(text)
      const id = blobIdOf(bytes)
      // First, so that no sweep removes it meanwhile; without its blob, after a crash in between, a reference opens nothing to anybody.
      await blobRefs.add(owner, [id], signal)
      await blobs.put(bytes, signal)
      return id
    },
    async get<T extends object>(id: BlobId, signal: AbortSignal) {
      const value = (kept.get(id) ?? parse<T>(id, await jsonBlobs.getText(id, signal))) as T
      kept.set(id, value)
      return value
    },
    async getText(id, signal) {
      const bytes = await blobs.get(id, signal).catch((error: unknown) => {
        if (error instanceof TuttiError && error.code === 'not_found') {
          throw new TuttiError('data_loss', `Blob ${id} is gone; put it back from a backup.`, { id }, error)
        }
        throw error
      })
      return new TextDecoder().decode(bytes)
    },
  }
  return jsonBlobs
}

function parse<T>(id: BlobId, text: string): T {
  try {
    return JSON.parse(text) as T
  } catch (cause) {
    throw new TuttiError('data_loss', `Blob ${id} is not JSON; restore it from a backup.`, { id }, cause)
  }
}
