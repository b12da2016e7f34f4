import type { BlobStore } from '@tutti/blob-store'
import type { BlobRefCatalog } from '@tutti/store'

/** The blob store for one owner's things: whatever is put can be read by that owner from then on (design §6). */
export function createOwnedBlobs(blobs: BlobStore, blobRefs: BlobRefCatalog, owner: string): BlobStore {
  return {
    ...blobs,
    async put(content, signal) {
      const id = await blobs.put(content, signal)
      await blobRefs.add(owner, [id], signal)
      return id
    },
  }
}
