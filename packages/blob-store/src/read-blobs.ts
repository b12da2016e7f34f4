import { Piscina } from 'piscina'
import type { BlobId } from '@tutti/core'
import { damaged, notFound, unreadable } from './blob-errors.ts'
import { damagedCode, type ReadBlobs, type WantedBlobs } from './read-blobs-thread.ts'

/** One thread reads faster than anything takes it; it goes when there is nothing to read, as it has memory of its own. */
const threads = { minThreads: 0, maxThreads: 1, idleTimeout: 10_000 }

let pool: Piscina<WantedBlobs, ReadBlobs> | undefined

/** Reads many small blobs in a thread. @throws TuttiError for the first that cannot be had. */
export async function readBlobs({ base, ids }: WantedBlobs): Promise<Uint8Array[]> {
  const filename = new URL('./read-blobs-thread.ts', import.meta.url).href
  pool ??= new Piscina({ ...threads, filename })
  const read = await pool.run({ base, ids }, { name: 'readBlobs' })
  if ('failed' in read) throw failure(ids[read.failed]!, read.code)
  return read.ends.map((end, at) => read.bytes.subarray(read.ends[at - 1] ?? 0, end))
}

function failure(id: BlobId, code: string): Error {
  if (code === damagedCode) return damaged(id)
  const cause = Object.assign(new Error(`reading ${id} failed with ${code}`), { code })
  return code === 'ENOENT' ? notFound(id, cause) : unreadable(id, cause)
}
