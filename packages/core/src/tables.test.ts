import { expect, test } from 'vitest'
import { composerStatus, composerStatuses, agentStatuses } from './agent-status.ts'
import { isCandidate, passedCheck, type Attempt } from './attempt.ts'
import { settings, type Setting } from './config.ts'
import { crashPoints, noCrashPoints, parseCrashOrder, syncCrashPoints } from './crash-points.ts'
import { errorCodes, TuttiError } from './errors.ts'
import { limits } from './limits.ts'
import { deliveryFailures, reasons } from './reasons.ts'

test('the reasons are the closed list of the design, each with an exit code and a sentence', () => {
  expect(Object.keys(reasons)).toEqual([
    'completed',
    'nothing_to_deliver',
    'stopped_by_user',
    'interrupted',
    'paused',
    'archived',
    'expired',
    'timeout',
    'stalled',
    'budget',
    'check_failed',
    'agent_error',
    'setup_failed',
    'boot_timeout',
    'sandbox_lost',
    'resource_limit',
    'data_loss',
    'rate_limited',
    'delivery_failed',
    'all_children_failed',
    'internal',
  ])
  for (const { exit, sentence } of Object.values(reasons)) {
    expect(exit).toBeGreaterThanOrEqual(0)
    expect(exit).toBeLessThan(64)
    expect(sentence).toMatch(/^[A-Z].*\.$/)
  }
  expect(
    Object.entries(reasons)
      .filter(([, { exit }]) => exit === 0)
      .map(([name]) => name),
  ).toEqual(['completed'])
  expect(reasons.delivery_failed.exit).toBe(9)
  expect(Object.keys(deliveryFailures)).toEqual([
    'auth',
    'protected_branch',
    'secret_found',
    'conflict',
    'moved',
    'closed_by_person',
    'forge_unavailable',
    'too_large',
  ])
})

test('every error code has a Connect code of the protocol, an HTTP error status and an exit code', () => {
  const connect = [
    'canceled',
    'unknown',
    'invalid_argument',
    'deadline_exceeded',
    'not_found',
    'already_exists',
    'permission_denied',
    'resource_exhausted',
    'failed_precondition',
    'aborted',
    'out_of_range',
    'unimplemented',
    'internal',
    'unavailable',
    'data_loss',
    'unauthenticated',
  ]
  for (const row of Object.values(errorCodes)) {
    expect(connect).toContain(row.connect)
    expect(row.http).toBeGreaterThanOrEqual(400)
    expect(row.http).toBeLessThan(600)
    expect(row.exit).toBeGreaterThan(0)
    expect(row.exit).toBeLessThan(126)
  }
  expect(
    Object.entries(errorCodes)
      .filter(([, row]) => row.retry)
      .map(([code]) => code),
  ).toEqual(['aborted', 'resource_exhausted', 'deadline_exceeded', 'unavailable'])
})

test('anything thrown becomes a TuttiError that leaks nothing of its cause', () => {
  const known = new TuttiError('not_found', 'No such agent.')
  expect(TuttiError.from(known)).toBe(known)
  const secret = TuttiError.from(new Error('password hunter2'))
  expect(secret).toMatchObject({ code: 'internal', detail: {} })
  expect(secret.message).not.toContain('hunter2')
  expect(secret.cause).toMatchObject({ message: 'password hunter2' })
  expect(TuttiError.from('text').code).toBe('internal')
  expect(TuttiError.from(undefined).code).toBe('internal')
  expect(TuttiError.from(AbortSignal.abort().reason).code).toBe('cancelled')
})

test('each setting has a reason, a unit that fits and an environment variable of its own', () => {
  const all = Object.entries<Setting<number | string>>(settings)
  for (const [name, setting] of all) {
    expect(name).toMatch(/^[a-z]+\.[a-z_]+$/)
    expect(setting.why, name).not.toBe('')
    expect(setting.env).toMatch(/^(TUTTI_[A-Z_]+|LOG_LEVEL)$/)
    if (typeof setting.default === 'number') {
      expect(Number.isSafeInteger(setting.default), name).toBe(true)
      // A port of 0 is none, and a life of 0 has no end.
      expect(setting.default, name).toBeGreaterThanOrEqual(/_port$|\.max_life$/.test(name) ? 0 : 1)
    }
    expect(
      ['ms', 'bytes', 'percent'].includes(setting.unit) && typeof setting.default !== 'number',
      name,
    ).toBe(false)
  }
  expect(new Set(all.map(([, setting]) => setting.env)).size).toBe(all.length)
  // A stop must end within 5 s: grace, then the kill, and one heartbeat throttle of 3 s before it.
  expect(settings['stop.grace'].default).toBeLessThan(2000)
  // What is silent is killed within them, be it silent from the start or after a grace of its own.
  expect(2 * settings['stop.grace'].default + settings['stop.answer'].default).toBeLessThanOrEqual(5000)
  // One that is frozen is replaced within two heartbeat timeouts; its silence is known a fifth late at most.
  expect(settings['sandbox.answer_timeout'].default * 1.2).toBeLessThan(
    2 * settings['turn.heartbeat_timeout'].default,
  )
  expect(settings['agent.inactivity'].default).toBe(10 * 60_000)
  expect(settings['agent.retention'].default).toBe(30 * 24 * 3_600_000)
  expect(limits).toMatchObject({ maxChildren: 50, maxRestarts: 3, maxBoots: 3, maxPromptBytes: 1048576 })
})

test('seed clients see CREATING until the first sandbox, and each status as the seed maps it', () => {
  const seen = Object.fromEntries(
    agentStatuses.map((status) => [status, [composerStatus(status, false), composerStatus(status, true)]]),
  )
  expect(seen).toEqual({
    UNSPECIFIED: ['UNSPECIFIED', 'UNSPECIFIED'],
    RUNNING: ['CREATING', 'RUNNING'],
    IDLE: ['FINISHED', 'FINISHED'],
    ERROR: ['ERROR', 'ERROR'],
    ARCHIVED: ['FINISHED', 'FINISHED'],
    EXPIRED: ['EXPIRED', 'EXPIRED'],
  })
  for (const statuses of Object.values(seen))
    for (const status of statuses) expect(composerStatuses).toContain(status)
})

test('crash orders name a crash point, a side and a passing', async () => {
  for (const name of Object.keys({ ...crashPoints, ...syncCrashPoints })) {
    expect(parseCrashOrder(`${name}:before`)).toEqual({ name, when: 'before', passing: 1 })
    expect(parseCrashOrder(`${name}:after:12`)).toEqual({ name, when: 'after', passing: 12 })
  }
  for (const bad of [
    '',
    'log.append',
    'log.append:',
    'log.append:during',
    'log.append:before:0',
    'log.append:before:-1',
    'log.append:before:1.5',
    'log.append:before:x',
    'unknown:before',
    'toString:before',
    '__proto__:before',
  ])
    expect(parseCrashOrder(bad), bad).toBeUndefined()
  expect(await noCrashPoints('log.append', async () => 7)).toBe(7)
})

test('a candidate ended well and changed something; a missing check counts as passed', () => {
  const attempt: Attempt = {
    bcId: 'bc-1',
    status: 'IDLE',
    reason: 'completed',
    base: 'a',
    commit: 'b',
    filesChanged: 1,
    summary: '',
    detail: '',
  }
  expect(isCandidate(attempt)).toBe(true)
  expect(isCandidate({ ...attempt, commit: 'a' })).toBe(false)
  expect(isCandidate({ ...attempt, reason: 'stopped_by_user' })).toBe(false)
  expect(isCandidate({ ...attempt, status: 'ERROR' })).toBe(false)
  expect(passedCheck(attempt)).toBe(true)
  for (const [exitCode, passed] of [
    [0, true],
    [1, false],
    [null, false],
  ] as const)
    expect(passedCheck({ ...attempt, check: { exitCode, tail: '', durationMs: 1 } })).toBe(passed)
})
