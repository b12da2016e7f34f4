import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { BlobId } from '@tutti/core'
import { sameStat, type StatTuple } from '@tutti/workspace'
import {
  claimFirst,
  claimLast,
  createHashTable,
  fillRow,
  hashOfRow,
  setWritten,
  waitWritten,
  type HashTable,
} from './hash-table.ts'

/**
 * Hashes of the files of a checkout, taken by a thread beside it: git writes one file after the other, and another core can read those that
 * are there. What is written here has its hash from that. One that is written on afterwards has another stat, and its hash counts for nothing.
 */
export interface EarlyHashes {
  /** The time from which on what has changed may have changed without a trace; nanoseconds since the epoch. */
  readonly startedAtNs: bigint
  /** What is not there now is not waited for. */
  written(): void
  /** Takes the hashes of these files, which are there, as well. */
  add(files: readonly string[]): void
  /** A file that was written with this content, and had this stat then. */
  know(key: string, stat: StatTuple, hash: BlobId): void
  /** Helps with what is left, and waits for its end. */
  finish(signal: AbortSignal): Promise<void>
  /** The hash of a file that has exactly this stat; undefined when it was not read like that. */
  of(key: string, stat: StatTuple): BlobId | undefined
}

/** With fewer files a thread takes as long to start as their hashes take. */
const minFiles = 2000

/** Rows, and bytes of a file, that keep other work of this process waiting for some 10 ms at most. */
const [rowsAtOnce, maxBytesHere] = [500, 4 << 20]

/** @param files path keys, in the order in which they will be written */
export function startEarlyHashes(root: string, files: readonly string[]): EarlyHashes {
  const tables: HashTable[] = []
  const threads: Promise<void>[] = []
  const rows = new Map<string, { readonly table: HashTable; readonly row: number }>()
  const known = new Map<string, { readonly stat: StatTuple; readonly hash: BlobId }>()
  const add = (keys: readonly string[]) => {
    const table = createHashTable(root, keys)
    tables.push(table)
    for (const [row, key] of keys.entries()) rows.set(key, { table, row })
    if (keys.length >= minFiles) threads.push(runThread(table))
  }
  const written = () => {
    for (const table of tables) setWritten(table)
  }
  add(files)
  return {
    startedAtNs: tables[0]!.startedAtNs,
    written,
    add(keys) {
      add(keys)
      written()
    },
    know(key, stat, hash) {
      known.set(key, { stat, hash })
    },
    async finish(signal) {
      let count = 0
      for (const table of tables)
        for (let row = claimLast(table); row !== undefined; row = claimLast(table)) {
          fillRow(table, row, maxBytesHere)
          count += 1
          if (count % rowsAtOnce > 0) continue
          await setImmediate()
          signal.throwIfAborted()
        }
      await Promise.all(threads)
    },
    of(key, stat) {
      const written = known.get(key)
      if (written && sameStat(written.stat, stat)) return written.hash
      const found = rows.get(key)
      return found && hashOfRow(found.table, found.row, stat)
    },
  }
}

/** Resolves at its end, however it ends: what it has not read is read without it. */
function runThread(table: HashTable): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    // The whole program is one file, of which `main.ts` runs this part in a thread.
    const thread = new Worker(fileURLToPath(import.meta.url), { workerData: table })
    thread.once('error', reject)
    thread.once('exit', () => resolve())
  }).catch(() => {})
}

const pauseMs = 2

/** The thread: one file after the other, each as soon as it is there. */
export function takeEarlyHashes(table: HashTable): void {
  for (let row = claimFirst(table); row !== undefined; row = claimFirst(table)) {
    while (!fillRow(table, row) && !waitWritten(table, pauseMs));
  }
}
