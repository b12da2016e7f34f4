import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { CompiledMigration } from './messages.ts'
import { openDatabase } from './open-database.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-open-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const step = (format: number, sql: string): CompiledMigration => ({
  format,
  statements: [{ sql, parameters: [] }],
})
const first = step(1, 'CREATE TABLE notes (text TEXT)')
const second = step(2, "ALTER TABLE notes ADD COLUMN colour TEXT DEFAULT 'red'")

/** Opens the file, runs one statement and gives what it answers. */
function run(migrations: readonly CompiledMigration[], sql: string) {
  const db = openDatabase(join(folder, 'tutti.db'), migrations)
  try {
    return db.prepare(sql).all()
  } finally {
    db.close()
  }
}

test('a file of an older format is brought to the newest, step by step, with what is in it', () => {
  run([first], "INSERT INTO notes VALUES ('kept')")
  expect(run([first, second], 'SELECT * FROM notes')).toEqual([{ text: 'kept', colour: 'red' }])
  expect(run([first, second], 'PRAGMA user_version')).toEqual([{ user_version: 2 }])
  expect(() => run([first], 'SELECT 1')).toThrow('use a newer Tutti')
})

test('a step that fails leaves the file at the format it had', () => {
  run([first], "INSERT INTO notes VALUES ('kept')")
  expect(() => run([first, second, step(3, 'DROP TABLE missing')], 'SELECT 1')).toThrow('missing')
  expect(run([first, second], 'SELECT * FROM notes')).toEqual([{ text: 'kept', colour: 'red' }])
})
