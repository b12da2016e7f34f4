import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { systemClock } from '@tutti/core'
import { isSameProcess, processStart } from '@tutti/processes'

export type LockKind = 'dev' | 'api' | 'worker'

/** A held lock. `role` is `dev`, `api` or `worker-N`. */
export interface HeldLock {
  readonly role: string
  /** N of `worker-N`; 1 for the others. */
  readonly index: number
  release(): void
  /**
   * Gives the lock back, and tells in the same step whether no other process of this data folder is left: then what they
   * share may be ended.
   */
  releaseAndCheckLast(): boolean
}

export interface LockHolder {
  readonly role: string
  readonly pid: number
}

/** Somebody else has it: `holder` is a living process. */
export interface LockRefused {
  readonly holder: LockHolder
}

/** Who runs on a data folder: one row per role and process, with its start time. */
export interface Locks {
  acquire(kind: LockKind): HeldLock | LockRefused
  /** Living holders. */
  holders(): readonly LockHolder[]
  /** Runs the step while no other process of the data folder runs one. Waits for the other. */
  exclusively<T>(step: () => Promise<T>, signal: AbortSignal): Promise<T>
}

interface Row {
  role: string
  pid: number
  start: string
}

/**
 * The locks of a data folder, in a small database of their own: a transaction makes looking, clearing away what dead processes
 * left and taking it one step, so that of two processes that find a stale lock only one gets it.
 */
export function createLocks(dataDir: string): Locks {
  const file = join(dataDir, 'locks.sqlite')
  const own = { pid: process.pid, start: processStart(process.pid) ?? '' }

  function transaction<T>(work: (database: DatabaseSync) => T): T {
    const database = new DatabaseSync(file, { timeout: 10_000 })
    try {
      database.exec('PRAGMA journal_mode=DELETE')
      database.exec('BEGIN IMMEDIATE')
      database.exec(
        'CREATE TABLE IF NOT EXISTS locks (role TEXT PRIMARY KEY, pid INTEGER NOT NULL, start TEXT NOT NULL) STRICT',
      )
      const result = work(database)
      database.exec('COMMIT')
      return result
    } finally {
      database.close()
    }
  }

  function living(database: DatabaseSync): Row[] {
    const rows = database
      .prepare('SELECT role, pid, start FROM locks ORDER BY role')
      .all() as unknown as Row[]
    return rows.filter((row) => {
      if (isSameProcess(row.pid, row.start)) return true
      database
        .prepare('DELETE FROM locks WHERE role = ? AND pid = ? AND start = ?')
        .run(row.role, row.pid, row.start)
      return false
    })
  }

  const take = (database: DatabaseSync, role: string) =>
    database.prepare('INSERT INTO locks (role, pid, start) VALUES (?, ?, ?)').run(role, own.pid, own.start)

  const giveBack = (database: DatabaseSync, role: string) =>
    database
      .prepare('DELETE FROM locks WHERE role = ? AND pid = ? AND start = ?')
      .run(role, own.pid, own.start)

  const isPart = (row: Row): boolean => row.role !== startRole

  return {
    acquire(kind) {
      return transaction((database): HeldLock | LockRefused => {
        const rows = living(database).filter(isPart)
        const blocker = rows.find(
          (row) => row.role === 'dev' || kind === 'dev' || (kind === 'api' && row.role === 'api'),
        )
        if (blocker) return { holder: { role: blocker.role, pid: blocker.pid } }
        let index = 1
        while (kind === 'worker' && rows.some((row) => row.role === `worker-${index}`)) index += 1
        const role = kind === 'worker' ? `worker-${index}` : kind
        take(database, role)
        return {
          role,
          index,
          release: () => transaction((later) => void giveBack(later, role)),
          releaseAndCheckLast: () =>
            transaction((later) => {
              giveBack(later, role)
              return living(later).filter(isPart).length === 0
            }),
        }
      })
    },
    holders: () =>
      transaction((database) =>
        living(database)
          .filter(isPart)
          .map(({ role, pid }) => ({ role, pid })),
      ),
    async exclusively(step, signal) {
      const got = () =>
        transaction((database) => {
          if (living(database).some((row) => row.role === startRole)) return false
          take(database, startRole)
          return true
        })
      while (!got()) await systemClock.sleep(50, signal)
      try {
        return await step()
      } finally {
        transaction((database) => void giveBack(database, startRole))
      }
    },
  }
}

/** Held while the shared Temporal server is looked for, started or ended. */
const startRole = 'temporal-start'

export const isRefused = (lock: HeldLock | LockRefused): lock is LockRefused => 'holder' in lock
