import { ApplicationFailure } from '@temporalio/common'
import type { HostSession, Sessions } from '@tutti/activities'
import { reasons } from '@tutti/core'
import { createSqliteStore } from '@tutti/store'
import { Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import type { ActivityCall } from './observe-activities.ts'
import { createWorkerMetrics } from './worker-metrics.ts'

const call = (type: string, input: Record<string, unknown> = {}): ActivityCall => ({
  type,
  attempt: 1,
  input,
})

async function setUp(sessionCount: number) {
  const store = await createSqliteStore({ path: ':memory:' })
  onTestFinished(() => store.close())
  const registry = new Registry()
  let now = 0
  const sessions = {
    all: () => Array.from({ length: sessionCount }, () => ({}) as HostSession),
  } as Partial<Sessions> as Sessions
  const metrics = createWorkerMetrics({
    registry,
    sessions,
    leases: store.catalog.leases,
    host: 'h',
    monotonic: () => now,
  })
  const valueOf = async (line: string) => {
    const found = (await registry.metrics()).split('\n').find((each) => each.startsWith(`${line} `))
    return found === undefined ? undefined : Number(found.slice(line.length))
  }
  return { store, metrics, registry, valueOf, pass: (ms: number) => (now += ms) }
}

test('sandboxes by state, and who waits for a slot', async () => {
  const { store, metrics, valueOf } = await setUp(3)
  const { signal } = new AbortController()
  for (const holder of ['bc-1', 'bc-2', 'bc-3'])
    await store.catalog.leases.acquire({ host: 'h', kind: 'agent', holder, slots: 1, now: 1 }, signal)
  const gates = ['runTurn', 'provisionSandbox', 'verify'].map((type) => {
    const gate = Promise.withResolvers<void>()
    const done = metrics.observe(call(type), async () => {
      await gate.promise
      return { reason: 'completed' }
    })
    return { gate, done }
  })
  const states = () =>
    Promise.all(
      ['booting', 'working', 'idle', 'verifying'].map((state) =>
        valueOf(`tutti_sandboxes{state="${state}"}`),
      ),
    )
  expect(await states()).toEqual([1, 1, 2, 1])
  expect(await valueOf('tutti_agents_waiting_for_slot')).toBe(2)
  for (const { gate, done } of gates) {
    gate.resolve()
    await done
  }
  expect(await states()).toEqual([0, 0, 3, 0])
})

test('durations, turns by reason, recoveries by outcome', async () => {
  const { metrics, valueOf, pass } = await setUp(0)
  const lasting = (ms: number, result: unknown) => async () => {
    pass(ms)
    return result
  }
  await metrics.observe(call('provisionSandbox'), lasting(2000, undefined))
  await metrics.observe(call('runTurn'), lasting(7000, { reason: 'timeout', failed: true }))
  const lost = new ApplicationFailure('gone', 'sandbox_lost')
  await expect(metrics.observe(call('runTurn'), () => Promise.reject(lost))).rejects.toBe(lost)
  const events = [
    { type: 'turn_interrupted', turnId: 't', restart: 1 },
    { type: 'turn_ended', turnId: 't', reason: 'sandbox_lost' },
    { type: 'turn_ended', turnId: 'u', reason: 'completed' },
  ]
  await metrics.observe(call('recordState', { events }), lasting(1, undefined))
  expect(await valueOf('tutti_provision_seconds_sum')).toBe(2)
  expect(await valueOf('tutti_turn_seconds_sum')).toBe(7)
  expect(await valueOf('tutti_turn_seconds_count')).toBe(1)
  expect(await valueOf('tutti_turns_total{reason="timeout"}')).toBe(1)
  expect(await valueOf('tutti_recoveries_total{outcome="restarted"}')).toBe(1)
  expect(await valueOf('tutti_recoveries_total{outcome="gave_up"}')).toBe(1)
  expect(await valueOf('tutti_recoveries_total{outcome="data_loss"}')).toBe(0)
})

test('appends are measured and denied connections counted', async () => {
  const { store, metrics, valueOf } = await setUp(0)
  const { signal } = new AbortController()
  const log = metrics.measured(store.eventLog)
  const id = 'bc-01890000-0000-7000-8000-000000000001'
  await log.create(id, 'local', signal)
  await log.append(id, { id: 'p', epoch: 0, sequence: 1 }, [{ type: 'x', body: '{}' }], signal)
  metrics.egressDenied()
  expect(await valueOf('tutti_event_append_seconds_count')).toBe(1)
  expect(await valueOf('tutti_egress_denied_total')).toBe(1)
})

test('labels are closed lists', async () => {
  const { metrics, registry } = await setUp(0)
  for (const reason of Object.keys(reasons)) await metrics.observe(call('runTurn'), async () => ({ reason }))
  const labels = [...(await registry.metrics()).matchAll(/\{(\w+)="([^"]*)"/g)].map(([, name]) => name)
  expect(new Set(labels)).toEqual(new Set(['le', 'outcome', 'reason', 'state']))
})
