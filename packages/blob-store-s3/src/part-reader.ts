import { createHash } from 'node:crypto'
import { blobIdOfHash } from '@tutti/blob-store/adapter'
import { TuttiError } from '@tutti/core'
import type { SpooledBlob } from './spooled-blob.ts'

export interface Part {
  /** From 1. */
  readonly number: number
  readonly bytes: Uint8Array
  /** Base64. */
  readonly sha256: string
}

/** A blob cut into parts, read in order, and hashed as a whole again while it is. */
export interface PartReader {
  readonly count: number
  next(): Promise<Part>
  /**
   * After the last part. The server checks each part by its own hash alone, which says nothing when the bytes changed since the blob
   * got its name: in the caller's hands, or on a bad disk.
   *
   * @throws TuttiError `unavailable`
   */
  check(): void
}

export function createPartReader(blob: SpooledBlob, partBytes: number): PartReader {
  const whole = createHash('sha256')
  let number = 0
  let last: Promise<unknown> = Promise.resolve()

  async function read(): Promise<Part> {
    number += 1
    const bytes = await blob.read((number - 1) * partBytes, number * partBytes)
    whole.update(bytes)
    return { number, bytes, sha256: createHash('sha256').update(bytes).digest('base64') }
  }

  return {
    count: Math.ceil(blob.size / partBytes),
    next() {
      const part = last.then(read)
      last = part.catch(() => {})
      return part
    },
    check() {
      if (blobIdOfHash(whole) === blob.id) return
      throw new TuttiError(
        'unavailable',
        `The bytes of blob ${blob.id} changed while they were stored, so they were not. Store them again when nothing writes to them.`,
        { id: blob.id, reason: 'changed_while_stored' },
      )
    },
  }
}
