import { DatabaseSync } from 'node:sqlite'
import { TuttiError } from '@tutti/core'
import type { CompiledMigration } from './messages.ts'
import { retryBusy } from './retry-busy.ts'

/** "TUTT": tells our files from other programs' (PRAGMA application_id). */
const applicationId = 0x54555454

/**
 * Opens or creates the file and brings it to the newest format.
 *
 * @throws TuttiError `failed_precondition` for a newer format or a file that is not ours; `unavailable` when it cannot be opened.
 */
export function openDatabase(path: string, migrations: readonly CompiledMigration[]): DatabaseSync {
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: true, timeout: 20 })
  try {
    checkOwnership(db, path, migrations)
    // WAL: readers never wait for writers. FULL: what was acknowledged survives a power loss.
    retryBusy(() => db.exec('PRAGMA journal_mode = WAL'))
    db.exec('PRAGMA synchronous = FULL')
    // On macOS a plain fsync leaves the data in the drive's cache; elsewhere this changes nothing.
    db.exec('PRAGMA fullfsync = ON')
    migrate(db, path, migrations)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

function checkOwnership(db: DatabaseSync, path: string, migrations: readonly CompiledMigration[]): void {
  const tables = retryBusy(() => numberOf(db, 'SELECT count(*) AS value FROM sqlite_schema'))
  const id = numberOf(db, 'SELECT application_id AS value FROM pragma_application_id')
  if (tables > 0 && id !== applicationId) {
    throw new TuttiError(
      'failed_precondition',
      `${path} is not a store of Tutti; choose another data folder.`,
      {
        path,
      },
    )
  }
  checkFormat(db, path, migrations)
}

function checkFormat(db: DatabaseSync, path: string, migrations: readonly CompiledMigration[]): number {
  const format = retryBusy(() => numberOf(db, 'SELECT user_version AS value FROM pragma_user_version'))
  const newest = migrations.at(-1)?.format ?? 0
  if (format <= newest) return format
  throw new TuttiError(
    'failed_precondition',
    `${path} has format ${format}, and this version of Tutti knows formats up to ${newest}; use a newer Tutti.`,
    { path, format, newest },
  )
}

function migrate(db: DatabaseSync, path: string, migrations: readonly CompiledMigration[]): void {
  if (checkFormat(db, path, migrations) === migrations.at(-1)?.format) return
  retryBusy(() => db.exec('BEGIN IMMEDIATE'))
  try {
    // Read again: another process may have migrated while this one waited.
    const format = checkFormat(db, path, migrations)
    for (const migration of migrations.filter((step) => step.format > format)) {
      for (const { sql, parameters } of migration.statements) db.prepare(sql).run(...parameters)
      db.exec(`PRAGMA user_version = ${migration.format}`)
    }
    db.exec(`PRAGMA application_id = ${applicationId}`)
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

const numberOf = (db: DatabaseSync, sql: string): number => Number(db.prepare(sql).get()?.['value'])
