import { createHash, hash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import type { BlobId } from '@tutti/core'
import { pathBytes, pathKey, type StatTuple } from '@tutti/workspace'
import { nowNs } from './workspace-state.ts'

/** A row for each of some files, in memory that threads share: its hash, and the stat that it had before it was read. */
export interface HashTable {
  /** Path keys of regular files below the root. */
  readonly files: readonly string[]
  /** Path key of the root, with the slash behind it. */
  readonly root: string
  readonly startedAtNs: bigint
  readonly stats: BigInt64Array
  readonly hashes: Uint8Array
  /** By {@link slots}. */
  readonly state: Int32Array
}

const slots = { first: 0, last: 1, written: 2 } as const
const statFields = ['ino', 'size', 'mtimeNs', 'ctimeNs', 'mode'] as const
const hashBytes = 32

export function createHashTable(root: string, files: readonly string[]): HashTable {
  const stats = new BigInt64Array(new SharedArrayBuffer(files.length * statFields.length * 8))
  const hashes = new Uint8Array(new SharedArrayBuffer(files.length * hashBytes))
  const state = new Int32Array(new SharedArrayBuffer(Object.keys(slots).length * 4))
  state[slots.last] = files.length - 1
  const rootKey = pathKey(Buffer.from(`${root}/`))
  return { files, root: rootKey, startedAtNs: nowNs(), stats, hashes, state }
}

/** The next row from the front; undefined when they meet. A row that both ends have claimed at once belongs to neither. */
export function claimFirst({ state }: HashTable): number | undefined {
  const row = Atomics.add(state, slots.first, 1)
  return row <= Atomics.load(state, slots.last) ? row : undefined
}

/** The next row from the back. */
export function claimLast({ state }: HashTable): number | undefined {
  const row = Atomics.sub(state, slots.last, 1)
  return row >= Atomics.load(state, slots.first) ? row : undefined
}

/** All files that there will be are there. */
export function setWritten({ state }: HashTable): void {
  Atomics.store(state, slots.written, 1)
  Atomics.notify(state, slots.written)
}

/** Waits a moment, or until all is written. @returns whether all is written */
export function waitWritten({ state }: HashTable, ms: number): boolean {
  Atomics.wait(state, slots.written, 0, ms)
  return Atomics.load(state, slots.written) === 1
}

const buffer = Buffer.allocUnsafe(256 << 10)

/**
 * Fills a row from the file as it is now; one that cannot be read, or is larger than `maxBytes`, stays without.
 *
 * @returns false when there is no such file
 */
export function fillRow(
  { root, files, stats, hashes }: HashTable,
  row: number,
  maxBytes = Number.MAX_SAFE_INTEGER,
): boolean {
  let file: number
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    file = openSync(pathBytes(root + files[row]!), flags)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
  try {
    const stat = fstatSync(file, { bigint: true })
    if (!stat.isFile() || stat.size > maxBytes) return true
    const digest = digestOf(file, Number(stat.size))
    if (!digest) return true
    // The stat is what makes a row count, so it comes last.
    hashes.set(digest, row * hashBytes)
    statFields.forEach((field, at) => (stats[row * statFields.length + at] = stat[field]))
    return true
  } finally {
    closeSync(file)
  }
}

/** The hash of a row, if the file was read with exactly this stat. */
export function hashOfRow({ stats, hashes }: HashTable, row: number, stat: StatTuple): BlobId | undefined {
  const at = row * statFields.length
  if (!statFields.every((field, index) => stats[at + index] === stat[field])) return undefined
  const digest = Buffer.from(hashes.buffer, row * hashBytes, hashBytes)
  return `sha256_${digest.toString('hex')}`
}

/** Undefined when it is not as long as it was. */
function digestOf(file: number, size: number): Uint8Array | undefined {
  let length = readSync(file, buffer)
  if (length < buffer.length)
    return length === size ? hash('sha256', buffer.subarray(0, length), 'buffer') : undefined
  const digest = createHash('sha256')
  for (let count = length; count > 0; length += count) {
    digest.update(buffer.subarray(0, count))
    count = readSync(file, buffer)
  }
  return length === size ? digest.digest() : undefined
}
