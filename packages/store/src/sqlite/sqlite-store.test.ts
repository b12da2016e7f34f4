import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { agentId, parseCrashOrder, type CrashOrder } from '@tutti/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { testCatalogContract, testEventLogContract } from '../contract.ts'
import { migrations } from '../migrations/index.ts'
import { createSqliteStore, type SqliteStore } from './sqlite-store.ts'

const never = new AbortController().signal
const opened: SqliteStore[] = []
let folder: string

async function open(options: Partial<Parameters<typeof createSqliteStore>[0]> = {}): Promise<SqliteStore> {
  const store = await createSqliteStore({ path: join(folder, 'tutti.db'), wakeDir: folder, ...options })
  opened.push(store)
  return store
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti-store-'))
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()))
  await rm(folder, { recursive: true })
})

testEventLogContract('sqlite file', async () => (await open()).eventLog)
testEventLogContract('sqlite memory', async () => (await createMemory()).eventLog)
testCatalogContract('sqlite file', async () => (await open()).catalog)
testCatalogContract('sqlite memory', async () => (await createMemory()).catalog)

async function createMemory(): Promise<SqliteStore> {
  const store = await createSqliteStore({ path: ':memory:' })
  opened.push(store)
  return store
}

async function storeWithRecords(count: number) {
  const store = await open()
  const log = agentId(Date.now(), new Uint8Array(10))
  await store.eventLog.create(log, 'owner', never)
  for (let sequence = 1; sequence <= count; sequence += 1) {
    const records = [{ type: 'text', body: `record ${sequence}` }]
    await store.eventLog.append(log, { id: 'p', epoch: 0, sequence }, records, never)
  }
  return { store, log }
}

function tamper(statement: string): void {
  const db = new DatabaseSync(join(folder, 'tutti.db'), { timeout: 5000 })
  db.exec(statement)
  db.close()
}

test.each([
  ['changed body', "UPDATE log_records SET body = 'recorD 3' WHERE sequence = 3"],
  ['changed type', "UPDATE log_records SET type = 'other' WHERE sequence = 3"],
  ['changed producer', 'UPDATE log_records SET epoch = 7 WHERE sequence = 3'],
  ['unknown record format', 'UPDATE log_records SET format = 99 WHERE sequence = 3'],
  ['missing record', 'DELETE FROM log_records WHERE sequence = 3'],
  ['missing end', 'DELETE FROM log_records WHERE sequence >= 3'],
])('%s is data_loss that names the record, after the records before it', async (_name, statement) => {
  const { store, log } = await storeWithRecords(5)
  tamper(statement)
  const { records, next } = await store.eventLog.read(log, 0, { waitMs: 20_000 }, never)
  expect(records.map(({ sequence }) => sequence)).toEqual([1, 2])
  const rest = store.eventLog.read(log, next, { waitMs: 20_000 }, never)
  await expect(rest).rejects.toMatchObject({ code: 'data_loss', detail: { sequence: 3 } })
  const filtered = store.eventLog.read(log, 0, { types: ['none'] }, never)
  await expect(filtered).rejects.toMatchObject({ code: 'data_loss', detail: { sequence: 3 } })
  for (const types of [['text'], ['text', 'other']]) {
    const unchecked = await store.eventLog.read(log, 0, { types, unchecked: true }, never)
    // Of a record that has become one of another type, only who looks at all of them can tell.
    const isHidden = statement.includes("'other'") && types.length === 1
    expect(unchecked.records.map(({ sequence }) => sequence)).toEqual(isHidden ? [1, 2, 4, 5] : [1, 2])
  }
})

test('a damaged page of the file is data_loss that names the record, after the records before it', async () => {
  const { store, log } = await storeWithRecords(100)
  await store.close()
  const path = join(folder, 'tutti.db')
  const bytes = await readFile(path)
  const place = bytes.indexOf('record 77')
  bytes.fill(0, place - (place % 4096), place - (place % 4096) + 4096)
  await writeFile(path, bytes)
  const { eventLog } = await open()
  const { records, next } = await eventLog.read(log, 0, {}, never)
  expect(records.map(({ body }) => body)).toEqual(
    Array.from({ length: next }, (_, index) => `record ${index + 1}`),
  )
  expect(next).toBeGreaterThan(0)
  expect(next).toBeLessThan(77)
  const rest = eventLog.read(log, next, {}, never)
  await expect(rest).rejects.toMatchObject({ code: 'data_loss', detail: { sequence: next + 1 } })
})

test('everything is there after closing and opening again, and a closed store is unavailable', async () => {
  const { store, log } = await storeWithRecords(2)
  await store.close()
  await store.close()
  await expect(store.eventLog.head(log, never)).rejects.toMatchObject({ code: 'unavailable' })
  const again = await open()
  expect(await again.eventLog.head(log, never)).toEqual({ last: 2, closed: false, archived: 0 })
  expect(await again.eventLog.expected(log, 'p', 0, never)).toBe(3)
})

test('closing waits for appends that were asked for before', async () => {
  const { store, log } = await storeWithRecords(0)
  const appended = store.eventLog.append(
    log,
    { id: 'p', epoch: 0, sequence: 1 },
    [{ type: 'a', body: '' }],
    never,
  )
  await store.close()
  expect(await appended).toEqual({ first: 1, last: 1, repeated: false })
})

test('closing ends readers that wait', async () => {
  const { store, log } = await storeWithRecords(0)
  const reading = store.eventLog.read(log, 0, { waitMs: 20_000 }, never)
  const [refused] = await Promise.allSettled([reading, store.close()])
  expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } })
})

test('a newer format is refused with what to do, and the file is left as it was', async () => {
  const { store } = await storeWithRecords(1)
  await store.close()
  const format = migrations.at(-1)!.format
  tamper('PRAGMA user_version = 99')
  await expect(open()).rejects.toMatchObject({
    code: 'failed_precondition',
    message: expect.stringContaining('use a newer Tutti') as string,
    detail: { format: 99 },
  })
  tamper(`PRAGMA user_version = ${format}`)
  await open()
})

test("another program's database and a file that is none are refused", async () => {
  tamper('CREATE TABLE theirs (x)')
  await expect(open()).rejects.toMatchObject({ code: 'failed_precondition' })
  const path = join(folder, 'text.db')
  await writeFile(path, 'this is not a database, and it is long enough to be looked at as one'.repeat(20))
  await expect(open({ path })).rejects.toMatchObject({ code: 'data_loss' })
  await expect(open({ path: join(folder, 'none', 'x.db') })).rejects.toMatchObject({ code: 'unavailable' })
  await expect(open({ wakeDir: path })).rejects.toMatchObject({ code: 'failed_precondition' })
  await expect(open({ path: join(folder, 'new.db'), wakeDir: path })).rejects.toMatchObject({
    code: 'unavailable',
  })
})

test('several stores may open a new file at once; it is migrated once', async () => {
  const stores = await Promise.all(Array.from({ length: 4 }, () => open()))
  const log = agentId(Date.now(), new Uint8Array(10))
  for (const { eventLog } of stores) await eventLog.create(log, 'owner', never)
  expect(await stores[3]?.eventLog.head(log, never)).toEqual({ last: 0, closed: false, archived: 0 })
})

test('every table has an owner', async () => {
  await open()
  const db = new DatabaseSync(join(folder, 'tutti.db'))
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
  expect(tables.length).toBeGreaterThanOrEqual(10)
  const owned = db.prepare(
    `SELECT tables.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
     WHERE tables.type = 'table' AND columns.name = 'owner'`,
  )
  expect(owned.all()).toEqual(tables)
  db.close()
})

test('passes log.append and catalog.write', async () => {
  const passed: string[] = []
  const store = await open({
    crashPoint: (name, step) => {
      passed.push(name)
      return step()
    },
  })
  const log = agentId(Date.now(), new Uint8Array(10))
  await store.eventLog.create(log, 'owner', never)
  await store.eventLog.append(log, { id: 'p', epoch: 0, sequence: 1 }, [{ type: 'a', body: '' }], never)
  await store.catalog.repositories.add('ann', 'shop', '/shop', 1, never)
  expect(passed).toEqual(['log.append', 'catalog.write'])
  expect(parseCrashOrder('log.append:after:2')).toEqual({
    name: 'log.append',
    when: 'after',
    passing: 2,
  } satisfies CrashOrder)
})
