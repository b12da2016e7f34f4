import { createSqliteStore, type SqliteStore } from '@tutti/store'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { createRecordViews } from './record-views.ts'
import { createSharedReads } from './shared-reads.ts'
import { unplacedPaths } from './unplaced-paths.ts'
import type { HandlerDeps } from './handler.ts'

const bcId = 'bc-01890a5d-ac96-774b-bcce-b302099a8057'
const signal = new AbortController().signal
const sandbox = { type: 'sandbox', incarnation: 2 } as const

let store: SqliteStore
let sequence: number
beforeEach(async () => {
  sequence = 0
  store = await createSqliteStore({ path: ':memory:' })
  await store.eventLog.create(bcId, 'owner', signal)
})
afterEach(() => store.close())

const write = async (...events: RunEvent[]): Promise<number> => {
  sequence += 1
  await store.eventLog.append(bcId, { id: 'test', epoch: 0, sequence }, events.map(encodeRunEvent), signal)
  return (await store.eventLog.head(bcId, signal)).last
}
const edit = (commandId: string, path: string): RunEvent => ({
  ...({ type: 'file_sync', commandId, path, action: 'created', fileType: 'file', mode: '100644' } as const),
  ...({ size: 1, hash: `sha256_${'a'.repeat(64)}` } as const),
})
const failed = (commandId: string, path: string): RunEvent => ({
  ...({
    type: 'file_sync_failed',
    incarnation: 2,
    commandId,
    path,
    code: 'EFBIG',
    detail: 'smaller',
  } as const),
})
const ack = (commandId: string): RunEvent => ({ type: 'ack', commandId })

const unplaced = async (from: number, until = Infinity) => {
  const { eventLog } = store
  const deps = {
    ...({ eventLog, reads: createSharedReads(eventLog), recordViews: createRecordViews() } as const),
    config: { 'stream.heartbeat': 1000 },
  } as unknown as HandlerDeps
  const events = await unplacedPaths(deps, { bcId, from, until }, signal)
  return events.map(({ commandId, path }) => `${commandId} ${path}`)
}

test('waits for what becomes of each edit that no sandbox had, and tells what could not be had', async () => {
  await write(edit('a', 'one'), edit('b', 'two'), edit('c', 'had'), ack('c'))
  const ready = await write({ ...sandbox, state: 'ready' })
  const told = unplaced(ready)
  await write(failed('a', 'one'))
  await write(ack('b'))
  expect(await told).toEqual(['a one'])
})

test('of a path the newest edit counts, also one that came after the sandbox was ready', async () => {
  await write(edit('a', 'grows'), edit('b', 'grows'), edit('c', 'shrinks'), edit('d', 'shrinks'))
  const ready = await write({ ...sandbox, state: 'ready' })
  // Tried were the first ones of before its boot, and then all together the last.
  await write(failed('a', 'grows'), failed('c', 'shrinks'), edit('e', 'grows'))
  await write(failed('e', 'grows'), ack('c'), ack('d'))
  expect(await unplaced(ready)).toEqual(['e grows'])
})

test('ends with the sandbox, and at a position', async () => {
  await write(edit('a', 'one'), edit('b', 'two'))
  const ready = await write({ ...sandbox, state: 'ready' })
  const last = await write(failed('a', 'one'))
  expect(await unplaced(ready, last)).toEqual(['a one'])
  await write({ ...sandbox, state: 'destroyed' }, failed('b', 'two'))
  expect(await unplaced(ready)).toEqual(['a one'])
})
