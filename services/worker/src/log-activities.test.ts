import { ApplicationFailure, CancelledFailure } from '@temporalio/common'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { logActivities } from './log-activities.ts'
import type { ActivityCall } from './observe-activities.ts'

const call: ActivityCall = {
  type: 'runTurn',
  attempt: 2,
  owner: 'local',
  bcId: 'bc-01890000-0000-7000-8000-000000000001',
  ensembleId: 'en-01890000-0000-7000-9000-000000000002',
  turn: 3,
  incarnation: 4,
  input: { secret: 'nobody reads me' },
}
const fields = { owner: 'local', bc_id: call.bcId, ensemble_id: call.ensembleId, turn: 3, incarnation: 4 }

function setUp() {
  const lines: string[] = []
  const base = pino({ base: null }, { write: (line: string) => void lines.push(line) })
  return {
    ...logActivities(base, () => 0),
    entries: () => lines.map((line) => JSON.parse(line) as unknown),
    lines,
  }
}

test('every line within an activity says who it is about, also after a wait; one outside does not', async () => {
  const { log, observe, entries } = setUp()
  await observe(call, async () => {
    await new Promise(setImmediate)
    log.warn({ target: 'x:443' }, 'two\nlines')
    return { reason: 'completed', detail: 'what the agent said' }
  })
  log.info({}, 'outside')
  expect(entries()).toMatchObject([
    { ...fields, target: 'x:443', msg: 'two\nlines', level: 40 },
    { ...fields, activity: 'runTurn', attempt: 2, reason: 'completed', msg: 'activity ended', level: 30 },
    { msg: 'outside' },
  ])
  expect(entries()[2]).not.toHaveProperty('bc_id')
})

test('activities at the same time keep their fields apart', async () => {
  const { log, observe, entries } = setUp()
  await Promise.all(
    [1, 2].map((turn) =>
      observe({ ...call, turn }, async () => {
        await new Promise(setImmediate)
        log.info({ said: turn }, 'inside')
      }),
    ),
  )
  const said = (entries() as { said?: number; turn: number }[]).filter((entry) => entry.said !== undefined)
  expect(said).toMatchObject([
    { said: 1, turn: 1 },
    { said: 2, turn: 2 },
  ])
})

test('a failure is told by its reason, not by its message; its one line holds no input', async () => {
  const { observe, entries, lines } = setUp()
  const failure = ApplicationFailure.nonRetryable('it printed a password', 'setup_failed')
  await expect(observe(call, () => Promise.reject(failure))).rejects.toBe(failure)
  await expect(observe(call, () => Promise.reject(new CancelledFailure('x')))).rejects.toThrow('x')
  expect(entries()).toMatchObject([
    { ...fields, reason: 'setup_failed', msg: 'activity failed', level: 40 },
    { ...fields, reason: 'cancelled', msg: 'activity cancelled', level: 30 },
  ])
  expect(lines.join('')).not.toMatch(/password|nobody reads me/)
})

test('a failure that nobody expected is told with its stack', async () => {
  const { observe, entries } = setUp()
  await expect(observe(call, () => Promise.reject(new Error('a defect')))).rejects.toThrow('a defect')
  expect(entries()).toMatchObject([
    { ...fields, reason: 'internal', err: { message: 'a defect', stack: expect.stringContaining('.ts:') } },
  ])
})

test('what is recorded all the time is logged only when it fails', async () => {
  const { observe, entries } = setUp()
  await observe({ ...call, type: 'recordState' }, () => Promise.resolve())
  expect(entries()).toEqual([])
})
