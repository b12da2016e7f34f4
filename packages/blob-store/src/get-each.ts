import type { BlobId } from '@tutti/core'
import { inParallel } from './in-parallel.ts'
import type { BlobStore } from './port.ts'

/** `getAll` for a store that gives one after the other: so many at once. */
export async function getEach(
  get: BlobStore['get'],
  ids: readonly BlobId[],
  atOnce: number,
  signal: AbortSignal,
): Promise<Uint8Array[]> {
  const contents: Uint8Array[] = []
  await inParallel(ids, atOnce, async (id, at) => {
    contents[at] = await get(id, signal)
  })
  return contents
}
