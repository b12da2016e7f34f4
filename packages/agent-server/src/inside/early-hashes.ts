import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { BlobId } from '@tutti/core'
import type { StatTuple } from '@tutti/workspace'
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
 * are there. One that is written on afterwards has another stat, and its hash counts for nothing.
 */
export interface EarlyHashes {
  /** The time from which on what has changed may have changed without a trace; nanoseconds since the epoch. */
  readonly startedAtNs: bigint
  /** What is not there now is not waited for. */
  written(): void
  /** Helps with what is left, and waits for its end. */
  finish(): Promise<void>
  /** The hash of a file that has exactly this stat; undefined when it was not read like that. */
  of(key: string, stat: StatTuple): BlobId | undefined
}

/** With fewer files a thread takes as long to start as their hashes take. */
const minFiles = 2000

/** @param files path keys, in the order in which they will be written */
export function startEarlyHashes(root: string, files: readonly string[]): EarlyHashes {
  const table = createHashTable(root, files)
  const rows = new Map(files.map((key, row) => [key, row]))
  const thread = files.length < minFiles ? Promise.resolve() : runThread(table)
  return {
    startedAtNs: table.startedAtNs,
    written: () => setWritten(table),
    async finish() {
      for (let row = claimLast(table); row !== undefined; row = claimLast(table)) fillRow(table, row)
      await thread
    },
    of(key, stat) {
      const row = rows.get(key)
      return row === undefined ? undefined : hashOfRow(table, row, stat)
    },
  }
}

/** Resolves at its end, however it ends: what it has not read is read without it. */
function runThread(table: HashTable): Promise<void> {
  return new Promise((resolve) => {
    // The program is one file, and finds out by itself that it is a thread.
    const thread = new Worker(fileURLToPath(import.meta.url), { workerData: table })
    thread.once('error', () => resolve())
    thread.once('exit', () => resolve())
  })
}

const pauseMs = 2

/** The thread: one file after the other, each as soon as it is there. */
export function takeEarlyHashes(table: HashTable): void {
  for (let row = claimFirst(table); row !== undefined; row = claimFirst(table)) {
    while (!fillRow(table, row) && !waitWritten(table, pauseMs));
  }
}
