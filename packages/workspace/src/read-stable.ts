import { constants, closeSync, fstatSync, lstatSync, openSync, readlinkSync, readSync } from 'node:fs'
import { sameStat, statTuple, type StatTuple } from './stat-tuple.ts'

export interface StableContent {
  readonly bytes: Buffer
  readonly stat: StatTuple
  /** False when the file kept changing while it was read: look again at the next scan. */
  readonly settled: boolean
}

const attempts = 3

/**
 * The whole content of a small file. It is read again when it changed meanwhile, up to three times; then the last
 * bytes are given as they were read, not settled.
 *
 * @throws the file system's error; `ELOOP` when the path has become a link, `EFBIG` when there is more of it than `maxBytes`.
 */
export function readStableFile(path: Buffer, maxBytes = Infinity): StableContent {
  for (let attempt = 1; ; attempt += 1) {
    // Without O_NONBLOCK a path that has become a fifo would hang the reader.
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const before = fstatSync(file, { bigint: true })
      if (!before.isFile()) throw Object.assign(new Error('not a regular file'), { code: 'EINVAL' })
      if (before.size > maxBytes) throw fileTooLarge()
      const bytes = readWhole(file, Number(before.size))
      const after = statTuple(fstatSync(file, { bigint: true }))
      const settled = sameStat(statTuple(before), after) && bytes.length === Number(after.size)
      if (settled || attempt === attempts) return { bytes, stat: after, settled }
    } finally {
      closeSync(file)
    }
  }
}

export const fileTooLarge = (): Error => Object.assign(new Error('larger than it may be'), { code: 'EFBIG' })

/** The raw target bytes of a symbolic link. */
export function readStableLink(path: Buffer): StableContent {
  const before = statTuple(lstatSync(path, { bigint: true }))
  const bytes = readlinkSync(path, { encoding: 'buffer' })
  const after = statTuple(lstatSync(path, { bigint: true }))
  return { bytes, stat: after, settled: sameStat(before, after) }
}

function readWhole(file: number, expected: number): Buffer {
  const buffer = Buffer.allocUnsafe(expected)
  let length = 0
  while (length < expected) {
    const count = readSync(file, buffer, length, expected - length, length)
    if (count === 0) break
    length += count
  }
  return buffer.subarray(0, length)
}
