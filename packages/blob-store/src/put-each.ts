import type { BlobId } from '@tutti/core'
import { inParallel } from './in-parallel.ts'
import type { BlobStore } from './port.ts'

/** `putAll` for a store that takes one after the other: so many at once. */
export async function putEach(
  put: BlobStore['put'],
  contents: readonly Uint8Array[],
  atOnce: number,
  signal: AbortSignal,
): Promise<BlobId[]> {
  const ids: BlobId[] = []
  await inParallel(contents, atOnce, async (bytes, at) => {
    ids[at] = await put(bytes, signal)
  })
  return ids
}
