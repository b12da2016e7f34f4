import { randomBytes } from 'node:crypto'
import { agentId, createManualClock, limits, systemClock, TuttiError } from '@tutti/core'
import { decodeRunEvent, type RunEvent } from '@tutti/protocol'
import { createSqliteStore, type EventLog, type SqliteStore } from '@tutti/store'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createRunLogWriter } from './run-log-writer.ts'

const never = new AbortController().signal
const log = agentId(Date.now(), randomBytes(10))
let store: SqliteStore

beforeEach(async () => {
  store = await createSqliteStore({ path: ':memory:' })
  await store.eventLog.create(log, 'local', never)
})
afterEach(() => store.close())

const writer = (eventLog: EventLog = store.eventLog, epoch = 1, clock = systemClock) =>
  createRunLogWriter({
    eventLog,
    clock,
    log,
    producer: { id: 'sandbox', epoch },
    signal: never,
  })

async function stored(): Promise<RunEvent[]> {
  const { records } = await store.eventLog.read(log, 0, { maxBytes: 1 << 30 }, never)
  return records.map(decodeRunEvent)
}

const text = (words: string): RunEvent => ({ type: 'text_delta', text: words })

/** A log that fails the first appends before or after it has stored them. */
function failing(times: number, when: 'before' | 'after'): EventLog {
  let left = times
  return {
    ...store.eventLog,
    async append(...args) {
      if (when === 'after') await store.eventLog.append(...args)
      if (left > 0) {
        left -= 1
        throw new TuttiError('unavailable', 'The store does not answer.')
      }
      return store.eventLog.append(...args)
    },
  }
}

test('neighbouring deltas become one record, never across another event, and keep their order', async () => {
  const out = await writer()
  await out.write(text('a'), text('b'), { type: 'step_started', stepId: 1 }, text('c'), text('d'))
  expect(await out.flush()).toBe(3)
  expect(await stored()).toEqual([text('ab'), { type: 'step_started', stepId: 1 }, text('cd')])
})

test.for(['', 'é', '€', '😀'])(
  'a flood of deltas with %j is joined to records of at most 16 KiB, whole and in order',
  async (unit) => {
    const out = await writer()
    const parts = Array.from({ length: 5000 }, (_, index) => `${unit}${index};`)
    for (const part of parts) await out.write(text(part))
    await out.flush()
    const events = await stored()
    const texts = events.map((event) => (event.type === 'text_delta' ? event.text : ''))
    expect(texts.join('')).toBe(parts.join(''))
    expect(Math.max(...texts.map((part) => Buffer.byteLength(part)))).toBeLessThanOrEqual(
      limits.coalesceBytes,
    )
    expect(events.length).toBeLessThan(500)
  },
)

test.for(['before', 'after'] as const)(
  'an append that fails %s it was stored is sent again under its number: nothing lost, nothing doubled',
  async (when) => {
    const out = await writer(failing(3, when))
    await out.write({ type: 'step_started', stepId: 1 }, { type: 'step_started', stepId: 2 })
    await out.flush()
    await out.write({ type: 'step_started', stepId: 3 })
    await out.flush()
    expect(await stored()).toEqual([1, 2, 3].map((stepId) => ({ type: 'step_started', stepId })))
  },
)

test('a fenced writer fails for good, and its successor goes on', async () => {
  const old = await writer()
  await old.write({ type: 'step_started', stepId: 1 })
  await old.flush()
  const next = await writer(store.eventLog, 2)
  await next.write({ type: 'step_started', stepId: 2 })
  await next.flush()
  await old.write({ type: 'step_started', stepId: 3 }).catch(() => undefined)
  await expect(old.flush()).rejects.toMatchObject({ code: 'aborted' })
  await expect(old.write({ type: 'step_started', stepId: 4 })).rejects.toMatchObject({ code: 'aborted' })
  expect(await stored()).toHaveLength(2)
})

test('a writer that starts again goes on with the numbers of its epoch', async () => {
  for (const stepId of [1, 2]) {
    const out = await writer()
    await out.write({ type: 'step_started', stepId })
    await out.flush()
  }
  expect(await stored()).toHaveLength(2)
})

test('a lone delta waits for its neighbour for 25 ms of the clock', async () => {
  const clock = createManualClock()
  const out = await writer(store.eventLog, 1, clock)
  await out.write(text('a'))
  await out.write(text('b'))
  clock.advance(limits.coalesceMs)
  await out.flush()
  expect(await stored()).toEqual([text('ab')])
})
