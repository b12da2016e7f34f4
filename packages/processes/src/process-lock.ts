import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { cancelledBy } from '@tutti/core'

const pollMs = 20

/**
 * Runs `work` while no other process (or other caller in this one) holds the lock of that file.
 *
 * The lock is SQLite's, that is the kernel's: it is gone the moment its holder dies, so that nothing has to guess from pids or
 * dates whether a lock is stale.
 */
export async function withProcessLock<T>(
  path: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  await mkdir(dirname(path), { recursive: true })
  const database = new DatabaseSync(path, { timeout: 0 })
  try {
    while (!tryLock(database)) {
      await setTimeout(pollMs, undefined, { signal }).catch(() => {
        throw cancelledBy(signal)
      })
    }
    return await work()
  } finally {
    database.close()
  }
}

const sqliteBusy = 5

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec('BEGIN EXCLUSIVE')
    return true
  } catch (error) {
    if ((error as { errcode?: number }).errcode === sqliteBusy) return false
    throw error
  }
}
