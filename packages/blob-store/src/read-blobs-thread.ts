import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import type { BlobId } from '@tutti/core'
import { blobIdOf } from './blob-id.ts'
import { blobPath } from './blob-path.ts'

/** Which blobs, and the folder of the store. */
export interface WantedBlobs {
  readonly base: string
  readonly ids: readonly BlobId[]
}

/** The contents one after the other, each up to its end; or the first that could not be read, and why. */
export type ReadBlobs =
  | { readonly bytes: Uint8Array; readonly ends: readonly number[] }
  | { readonly failed: number; readonly code: string }

/** `code` of a file that has other bytes than it must. */
export const damagedCode = 'DAMAGED'

/** The thread: reads files by calls that wait, which takes a tenth of the time that calls with an answer take. */
export function readBlobs({ base, ids }: WantedBlobs): ReadBlobs {
  const contents: Uint8Array[] = []
  const ends: number[] = []
  let length = 0
  for (const [at, id] of ids.entries()) {
    try {
      const content = readWhole(blobPath(base, id))
      if (blobIdOf(content) !== id) return { failed: at, code: damagedCode }
      contents.push(content)
      length += content.length
      ends.push(length)
    } catch (error) {
      return { failed: at, code: (error as NodeJS.ErrnoException).code ?? String(error) }
    }
  }
  return { bytes: Buffer.concat(contents), ends }
}

/** A blob never changes: what is longer or shorter than it says has another hash too. */
function readWhole(path: string): Uint8Array {
  const file = openSync(path, 'r')
  try {
    const content = Buffer.allocUnsafe(fstatSync(file).size)
    let length = 0
    while (length < content.length) {
      const count = readSync(file, content, { offset: length })
      if (count === 0) break
      length += count
    }
    return content.subarray(0, length)
  } finally {
    closeSync(file)
  }
}
