import { randomBytes } from 'node:crypto'
import { CancelledFailure } from '@temporalio/common'
import { MockActivityEnvironment } from '@temporalio/testing'
import { agentId, ensembleId, noCrashPoints, systemClock, type AgentId, type EnsembleId } from '@tutti/core'
import { decodeRunEvent } from '@tutti/protocol'
import { createSqliteStore, type SqliteStore } from '@tutti/store'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createAdmit } from './admit.ts'
import type { ActivityDeps } from './deps.ts'

const never = new AbortController().signal
const host = 'here'
let store: SqliteStore
let asked: string[]
beforeEach(async () => {
  store = await createSqliteStore({ path: ':memory:' })
  asked = []
})
afterEach(() => store.close())

async function newAgent(status: 'RUNNING' | 'IDLE' = 'RUNNING'): Promise<AgentId> {
  const bcId = agentId(Date.now(), randomBytes(10))
  await store.catalog.agents.insert(
    {
      bcId,
      owner: 'local',
      title: 't',
      repository: 'r',
      agentSpec: 'embedded',
      configBlobId: `sha256_${'0'.repeat(64)}`,
      createdAt: 1,
      state: { status, paused: false, queue: [] },
    },
    never,
  )
  await store.eventLog.create(bcId, 'local', never)
  return bcId
}

function admit(bcId: AgentId, slots = 1, of?: EnsembleId) {
  const environment = new MockActivityEnvironment()
  // Only what an admission uses.
  const deps = {
    eventLog: store.eventLog,
    catalog: store.catalog,
    clock: systemClock,
    crashPoint: noCrashPoints,
    host,
    hostQueue: 'queue-here',
    draining: new AbortController().signal,
    maxSandboxes: slots,
    askToRelease: async (holder: string) => void asked.push(holder),
    log: { info() {}, warn() {} },
  } as unknown as ActivityDeps
  const input = {
    bcId,
    owner: 'local',
    configBlobId: `sha256_${'0'.repeat(64)}`,
    incarnation: 1,
    heartbeatMs: 3000,
    ...(of && { ensembleId: of }),
  } as const
  return { environment, answer: environment.run(createAdmit(deps), input) }
}

const positions = async (bcId: AgentId) =>
  (await store.eventLog.read(bcId, 0, {}, never)).records
    .map(decodeRunEvent)
    .map((event) => event.type === 'sandbox' && event.position)

test('slots are given in order of arrival, the place is in the log, and a repeat keeps what it has', async () => {
  const [first, second, third] = [await newAgent(), await newAgent(), await newAgent()]
  expect(await admit(first).answer).toEqual({ hostQueue: 'queue-here' })
  expect(await admit(first).answer).toEqual({ hostQueue: 'queue-here' })
  const waiting = admit(second)
  await vi.waitFor(async () => expect(await positions(second)).toEqual([1]))
  const last = admit(third)
  await vi.waitFor(async () => expect(await positions(third)).toEqual([2]))
  expect(asked).toEqual([])
  await store.catalog.leases.release(host, first, never)
  await waiting.answer
  await vi.waitFor(async () => expect(await positions(third)).toEqual([2, 1]))
  await store.catalog.leases.release(host, second, never)
  await last.answer
  expect((await store.catalog.leases.list(host, never)).map((lease) => lease.holder)).toEqual([third])
})

test('the ensemble sees a child wait, and that the wait is over; of no wait it hears nothing', async () => {
  const [first, second, ensemble] = [
    await newAgent(),
    await newAgent(),
    ensembleId(Date.now(), randomBytes(10)),
  ]
  await store.eventLog.create(ensemble, 'local', never)
  const seen = async () =>
    (await store.eventLog.read(ensemble, 0, {}, never)).records
      .map(decodeRunEvent)
      .map((event) => event.type === 'child' && [event.child.bcId, event.child.queuePosition])
  await admit(first, 1, ensemble).answer
  expect(await seen()).toEqual([])
  const waiting = admit(second, 1, ensemble)
  await vi.waitFor(async () => expect(await seen()).toEqual([[second, 1]]))
  await store.catalog.leases.release(host, first, never)
  await waiting.answer
  expect(await seen()).toEqual([
    [second, 1],
    [second, undefined],
  ])
  expect(await positions(second)).toEqual([1])
})

test('an admission that is cancelled gives its place back and ends as cancelled', async () => {
  const [first, second] = [await newAgent(), await newAgent()]
  await admit(first).answer
  const waiting = admit(second)
  await vi.waitFor(async () => expect(await positions(second)).toEqual([1]))
  waiting.environment.cancel('CANCELLED')
  await expect(waiting.answer).rejects.toBeInstanceOf(CancelledFailure)
  expect((await store.catalog.leases.list(host, never)).map((lease) => lease.holder)).toEqual([first])
})

test('an idle holder is asked to give its slot up; a running one is not', async () => {
  const [busy, idle, next] = [await newAgent(), await newAgent('IDLE'), await newAgent()]
  await admit(busy, 2).answer
  await admit(idle, 2).answer
  const waiting = admit(next, 2)
  await vi.waitFor(() => expect(asked.length).toBeGreaterThan(0))
  expect(new Set(asked)).toEqual(new Set([idle]))
  await store.catalog.leases.release(host, idle, never)
  await waiting.answer
})
