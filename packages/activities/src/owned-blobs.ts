import { blobIdOf, type BlobStore } from '@tutti/blob-store'
import { TuttiError, type BlobId } from '@tutti/core'

/** `add` or `use` of `BlobRefCatalog`, for one owner. */
export type AnnounceBlobs = (blobs: readonly BlobId[], signal: AbortSignal) => Promise<void>

/**
 * The blob store for one owner's things: whatever is put can be read by that owner from then on (design §6), and no sweep removes it
 * between the put and the event that names it, as it is announced first. What comes as a stream has its hash only when it is stored;
 * it is looked for once more then.
 */
export function createOwnedBlobs(blobs: BlobStore, announce: AnnounceBlobs): BlobStore {
  return {
    ...blobs,
    async put(content, signal) {
      if (content instanceof Uint8Array) {
        await announce([blobIdOf(content)], signal)
        return blobs.put(content, signal)
      }
      const id = await blobs.put(content, signal)
      await announce([id], signal)
      if (await blobs.has(id, signal)) return id
      throw new TuttiError('unavailable', `Blob ${id} was removed while it was stored; store it again.`, {
        id,
      })
    },
    async putAll(contents, signal) {
      await announce(contents.map(blobIdOf), signal)
      return blobs.putAll(contents, signal)
    },
  }
}
