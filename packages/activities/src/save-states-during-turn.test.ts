import { randomBytes } from 'node:crypto'
import { createMemoryBlobStore } from '@tutti/blob-store'
import { agentId, systemClock, type BlobId } from '@tutti/core'
import { decodeRunEvent, type RunEvent } from '@tutti/protocol'
import { decodeCloudAgentState } from '@tutti/protocol/wire'
import { createSqliteStore, type EventLog, type SqliteStore } from '@tutti/store'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ActivityDeps } from './deps.ts'
import { createRunLogWriter } from './run-log-writer.ts'
import { saveStatesDuringTurn } from './save-states-during-turn.ts'
import type { HostSession } from './sessions.ts'

const never = new AbortController().signal
let store: SqliteStore

beforeEach(async () => {
  store = await createSqliteStore({ path: ':memory:' })
})
afterEach(() => store.close())

test('a state is saved after 500 events, from the last one on, and its own event is no reason for the next', async () => {
  const bcId = agentId(Date.now(), randomBytes(10))
  const blobs = createMemoryBlobStore()
  const configBlobId: BlobId = `sha256_${'0'.repeat(64)}`
  await store.eventLog.create(bcId, 'ann', never)
  await store.catalog.agents.insert(
    {
      bcId,
      owner: 'ann',
      title: 'Fix it',
      repository: 'shop',
      agentSpec: 'embedded',
      configBlobId,
      createdAt: 1000,
      state: { status: 'RUNNING', paused: false, queue: [] },
    },
    never,
  )
  const log = await createRunLogWriter({
    eventLog: store.eventLog,
    clock: systemClock,
    log: bcId,
    producer: { id: 'sandbox', epoch: 1 },
    signal: never,
  })
  const readFrom: number[] = []
  const eventLog: EventLog = {
    ...store.eventLog,
    read(...args) {
      readFrom.push(args[1])
      return store.eventLog.read(...args)
    },
  }
  const deps = {
    eventLog,
    catalog: store.catalog,
    blobs,
    clock: systemClock,
    log: { info() {}, warn() {} },
    stateIntervalMs: 3_600_000,
  } as unknown as ActivityDeps
  const session = { bcId, owner: 'ann', log, controller: new AbortController() } as HostSession
  const steps = (count: number) =>
    log.write(...Array.from({ length: count }, (_, stepId): RunEvent => ({ type: 'step_started', stepId })))
  const savedUpTo = async () => {
    const { savedState } = await store.catalog.agents.get('ann', bcId, never)
    if (!savedState) return 0
    return decodeCloudAgentState(await blobs.get(savedState.blobId, never)).numPriorInteractionUpdates
  }

  const saving = saveStatesDuringTurn(deps, session)
  try {
    await steps(500)
    await expect.poll(savedUpTo, { timeout: 10_000 }).toBe(500)
    await steps(499)
    await log.flush()
    await steps(1)
    await expect.poll(savedUpTo, { timeout: 10_000 }).toBe(1000)
  } finally {
    await saving.stop()
  }
  const { records } = await store.eventLog.read(bcId, 0, { types: ['state_saved'] }, never)
  expect(records.map(({ sequence }) => sequence)).toEqual([501, 1002])
  expect(readFrom).toEqual([0, 500])
  for (const record of records) {
    const { blobId } = decodeRunEvent(record) as Extract<RunEvent, { type: 'state_saved' }>
    expect(await store.catalog.blobRefs.has('ann', blobId, never)).toBe(true)
  }
})
