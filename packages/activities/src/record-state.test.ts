import { randomBytes } from 'node:crypto'
import { createMemoryBlobStore } from '@tutti/blob-store'
import { agentId, ensembleId, initialAgentState, type AgentState, noCrashPoints } from '@tutti/core'
import { decodeRunEvent } from '@tutti/protocol'
import { createSqliteStore, type SqliteStore } from '@tutti/store'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createConfigBlobs } from './config-blobs.ts'
import type { RecordState } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { createRecordAttempt } from './record-attempt.ts'
import { createRecordState } from './record-state.ts'
import { createSessions } from './sessions.ts'

const never = new AbortController().signal
const owner = 'local'
const running: AgentState = {
  status: 'RUNNING',
  paused: false,
  queue: [],
  current: { turnId: 'turn-1', promptBlobId: `sha256_${'0'.repeat(64)}`, source: 'API' },
}

let store: SqliteStore
let input: RecordState
let deps: ActivityDeps
const bcId = agentId(Date.now(), randomBytes(10))
const ensemble = ensembleId(Date.now(), randomBytes(10))

beforeEach(async () => {
  store = await createSqliteStore({ path: ':memory:' })
  const blobs = createMemoryBlobStore()
  const put = (text: string) => blobs.put(new TextEncoder().encode(text), never)
  const configBlobId = await put(
    JSON.stringify({ version: 1, repository: 'repo', ref: 'main', agentSpec: 'embedded:scripted' }),
  )
  const common = { owner, title: 't', repository: 'repo', configBlobId, createdAt: 1 }
  const child = {
    ...common,
    bcId,
    ensembleId: ensemble,
    childIndex: 0,
    agentSpec: 'embedded',
    state: initialAgentState,
  }
  await store.catalog.ensembles.insert(
    { ...common, ensembleId: ensemble, strategy: 'pick', childIds: [bcId] },
    [child],
    never,
  )
  for (const log of [bcId, ensemble]) await store.eventLog.create(log, owner, never)
  // Only what recording uses.
  const { eventLog, catalog } = store
  deps = { eventLog, catalog, blobs, crashPoint: noCrashPoints } as unknown as ActivityDeps
  input = {
    bcId,
    owner,
    configBlobId,
    ensembleId: ensemble,
    runId: 'run-1',
    sequence: 1,
    events: [
      { type: 'session_start' },
      { type: 'user_message', turn: { ...running.current!, promptBlobId: await put('fix it') } },
      { type: 'status', status: 'RUNNING', paused: false, queued: 0, hadSandbox: false },
    ],
    state: running,
    turns: 1,
    incarnation: 1,
    hadSandbox: false,
  }
})
afterEach(() => store.close())

const logOf = async (log: typeof bcId | typeof ensemble) =>
  (await store.eventLog.read(log, 0, {}, never)).records.map(decodeRunEvent)
const record = (more: Partial<RecordState> = {}) =>
  createRecordState(deps, createConfigBlobs(deps.blobs))({ ...input, ...more })

test('a repeated recording changes nothing: each event once, in the log of the agent and of its ensemble', async () => {
  await record()
  await record()
  expect((await logOf(bcId)).map((event) => event.type)).toEqual(['session_start', 'user_message', 'status'])
  expect((await logOf(bcId))[1]).toMatchObject({ turnId: 'turn-1', text: 'fix it' })
  expect(await logOf(ensemble)).toMatchObject([
    { type: 'child', child: { bcId, index: 0, status: 'RUNNING', hadSandbox: false } },
  ])
  expect(await store.catalog.agents.get(owner, bcId, never)).toMatchObject({
    state: running,
    turns: 1,
    logSequence: 3,
  })
})

test('a late repeat of an older recording does not turn the projection back', async () => {
  await record()
  const idle: AgentState = { status: 'IDLE', paused: false, reason: 'completed', queue: [] }
  await record({
    sequence: 2,
    state: idle,
    events: [{ type: 'turn_ended', turnId: 'turn-1', reason: 'completed' }],
  })
  await record()
  expect((await store.catalog.agents.get(owner, bcId, never)).state).toEqual(idle)
  // The end of the turn saved a state, once.
  const types = (await logOf(bcId)).map(({ type }) => type)
  expect(types).toHaveLength(5)
  expect(types.filter((type) => type === 'state_saved')).toHaveLength(1)
})

test('a gap is refused and tried again; a second run numbers by itself', async () => {
  await expect(record({ sequence: 2 })).rejects.toMatchObject({ type: 'internal' })
  await record()
  await record({ runId: 'run-2', events: [{ type: 'turn_interrupted', turnId: 'turn-1', restart: 1 }] })
  expect((await logOf(bcId)).at(-1)).toEqual({
    type: 'turn_interrupted',
    turnId: 'turn-1',
    restart: 1,
    incarnation: 1,
  })
})

test('a child that goes on after its ensemble has ended is recorded, and changes nothing of that result', async () => {
  const attempt = createRecordAttempt(deps, createSessions())
  const end = {
    bcId,
    owner,
    configBlobId: input.configBlobId,
    incarnation: 1,
    ensembleId: ensemble,
    detail: '',
  }
  await attempt({ ...end, status: 'IDLE', reason: 'completed' })
  await attempt({ ...end, status: 'IDLE', reason: 'completed' })
  expect(await logOf(ensemble)).toHaveLength(1)
  await store.eventLog.close(ensemble, never)
  await record()
  await attempt({ ...end, status: 'ERROR', reason: 'agent_error' })
  expect(await logOf(bcId)).toHaveLength(3)
  expect(await logOf(ensemble)).toHaveLength(1)
  expect(await store.catalog.attempts.list(ensemble, never)).toMatchObject([
    { status: 'IDLE', reason: 'completed' },
  ])
})
