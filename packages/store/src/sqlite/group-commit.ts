import type { DatabaseSync } from 'node:sqlite'
import { retryBusy } from './retry-busy.ts'
import { concernsOne } from './sqlite-errors.ts'

export type Outcome = { readonly value: unknown } | { readonly error: unknown }

/**
 * Runs all steps in one transaction, so that they share one fsync. A step that is refused takes back only itself; when the store
 * fails, nothing of any step was stored and all of them fail.
 */
export function createGroupCommit(
  db: DatabaseSync,
): (steps: readonly (() => unknown)[]) => readonly Outcome[] {
  // IMMEDIATE: a transaction that reads first and then writes could otherwise fail when another process wrote in between.
  const begin = db.prepare('BEGIN IMMEDIATE')
  const savepoint = db.prepare('SAVEPOINT step')
  const release = db.prepare('RELEASE step')
  const takeBack = db.prepare('ROLLBACK TO step')
  const commit = db.prepare('COMMIT')
  const rollback = db.prepare('ROLLBACK')

  function attempt(step: () => unknown): Outcome {
    savepoint.run()
    try {
      const value = step()
      release.run()
      return { value }
    } catch (error) {
      if (!concernsOne(error) || !db.isTransaction) throw error
      takeBack.run()
      release.run()
      return { error }
    }
  }

  return (steps) => {
    try {
      retryBusy(() => begin.run())
      const outcomes = steps.map(attempt)
      commit.run()
      return outcomes
    } catch (error) {
      if (db.isTransaction) rollback.run()
      return steps.map(() => ({ error }))
    }
  }
}
