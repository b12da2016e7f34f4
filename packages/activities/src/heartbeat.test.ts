import { ActivityCancellationDetails } from '@temporalio/common'
import { MockActivityEnvironment } from '@temporalio/testing'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { keepAlive, withHeartbeat } from './heartbeat.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

test('beats on entry, at each phase and by timer, until the body has ended', async () => {
  const environment = new MockActivityEnvironment()
  const beats: unknown[] = []
  environment.on('heartbeat', (details) => beats.push(details))
  const answer = await environment.run(() =>
    withHeartbeat(300, async (signal, phase) => {
      expect(beats).toEqual([{ phase: 'start' }])
      phase('work')
      await vi.advanceTimersByTimeAsync(300)
      expect(signal.aborted).toBe(false)
      return 7
    }),
  )
  expect(answer).toBe(7)
  expect(beats.slice(1)).toEqual(Array.from({ length: 4 }, () => ({ phase: 'work' })))
  expect(vi.getTimerCount()).toBe(0)
})

test('a short step beats only while it lasts, and only where it is asked to', async () => {
  for (const heartbeatTimeoutMs of [300, undefined]) {
    const environment = new MockActivityEnvironment({ ...(heartbeatTimeoutMs && { heartbeatTimeoutMs }) })
    let beats = 0
    environment.on('heartbeat', () => (beats += 1))
    const step = keepAlive(async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms)
      return ms
    })
    expect(await environment.run(step, 0)).toBe(0)
    expect(beats).toBe(0)
    expect(await environment.run(step, 500)).toBe(500)
    expect(beats).toBe(heartbeatTimeoutMs === undefined ? 0 : 5)
    expect(vi.getTimerCount()).toBe(0)
  }
})

const details = {
  cancelRequested: false,
  notFound: false,
  paused: false,
  timedOut: false,
  workerShutdown: false,
  reset: false,
}

test.for([
  ['stopped', { ...details, cancelRequested: true }],
  ['shutdown', { ...details, workerShutdown: true }],
  ['replaced', { ...details, timedOut: true }],
  ['replaced', { ...details, notFound: true }],
] as const)('a cancel is told apart: %s by %j', async ([cause, why]) => {
  const environment = new MockActivityEnvironment()
  const running = environment.run(() =>
    withHeartbeat(1000, async (signal, _phase, cancelCause) => {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      return cancelCause()
    }),
  )
  environment.cancel('CANCELLED', new ActivityCancellationDetails(why))
  expect(await running).toBe(cause)
})
