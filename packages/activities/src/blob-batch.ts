import type { BlobStore } from '@tutti/blob-store'
import { TuttiError, type BlobId } from '@tutti/core'

/** Stores small contents together: thousands of new files cost as many waits for a disk or a network else. */
export interface BlobBatch {
  /** Resolves when there is room for more; the content is stored with a later call or with {@link stored}. */
  add(id: BlobId, bytes: Uint8Array): Promise<void>
  /** Resolves when everything so far is stored. */
  stored(): Promise<void>
}

/** A file up to here waits in memory until it is stored with others, in bytes. */
export const maxBatched = 64 << 10

/** Of one batch: what a capture may hold in memory twice, as one is stored while the next one fills. */
const [maxCount, maxBytes] = [1000, 8 << 20]

/** @throws TuttiError `data_loss` from either call when a content is not that of its id. */
export function createBlobBatch(blobs: Pick<BlobStore, 'putAll'>, signal: AbortSignal): BlobBatch {
  let ids: BlobId[] = []
  let contents: Uint8Array[] = []
  let bytes = 0
  let storing: Promise<void> = Promise.resolve()

  const store = async (expected: readonly BlobId[], batch: readonly Uint8Array[]) => {
    const stored = await blobs.putAll(batch, signal)
    if (stored.some((id, at) => id !== expected[at]))
      throw new TuttiError('data_loss', 'A captured file does not have the hash that was announced.')
  }
  const flush = async () => {
    await storing
    if (contents.length === 0) return
    storing = store(ids, contents)
    // Whoever comes next is told.
    storing.catch(() => {})
    ids = []
    contents = []
    bytes = 0
  }

  return {
    async add(id, content) {
      ids.push(id)
      contents.push(content)
      bytes += content.length
      if (contents.length >= maxCount || bytes >= maxBytes) await flush()
    },
    async stored() {
      await flush()
      await storing
    },
  }
}
