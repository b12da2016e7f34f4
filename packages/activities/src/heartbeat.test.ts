import { ActivityCancellationDetails } from '@temporalio/common'
import { MockActivityEnvironment } from '@temporalio/testing'
import { expect, test, vi } from 'vitest'
import { keepAlive, withHeartbeat } from './heartbeat.ts'

test('beats on entry, at each phase and by timer, until the body has ended', async () => {
  const environment = new MockActivityEnvironment()
  const beats: unknown[] = []
  environment.on('heartbeat', (details) => beats.push(details))
  const answer = await environment.run(() =>
    withHeartbeat(300, async (signal, phase) => {
      expect(beats).toEqual([{ phase: 'start' }])
      phase('work')
      await vi.waitFor(() => expect(beats.length).toBeGreaterThan(4), { timeout: 5000 })
      expect(signal.aborted).toBe(false)
      return 7
    }),
  )
  expect(answer).toBe(7)
  expect(beats.slice(1)).toEqual(beats.slice(1).map(() => ({ phase: 'work' })))
  const count = beats.length
  await new Promise((resolve) => setTimeout(resolve, 250))
  expect(beats).toHaveLength(count)
})

test('a short step beats only while it lasts, and only where it is asked to', async () => {
  for (const heartbeatTimeoutMs of [300, undefined]) {
    const environment = new MockActivityEnvironment({ ...(heartbeatTimeoutMs && { heartbeatTimeoutMs }) })
    let beats = 0
    environment.on('heartbeat', () => (beats += 1))
    const step = keepAlive(async (ms: number) => {
      await new Promise((resolve) => setTimeout(resolve, ms))
      return ms
    })
    expect(await environment.run(step, 0)).toBe(0)
    expect(beats).toBe(0)
    expect(await environment.run(step, 500)).toBe(500)
    expect(beats > 1).toBe(heartbeatTimeoutMs !== undefined)
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
