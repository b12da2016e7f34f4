import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createTurnControl } from './turn-control.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a turn that does nothing stalls, one that goes on runs into its time limit', () => {
  const control = createTurnControl({ timeoutMs: 600_000, stallMs: 60_000 })
  for (let beat = 0; beat < 9; beat += 1) {
    vi.advanceTimersByTime(59_000)
    control.alive()
  }
  expect(control.ended()).toBeUndefined()
  vi.advanceTimersByTime(60_000)
  expect(control.ended()).toEqual({
    kind: 'limit',
    reason: 'stalled',
    detail: 'The agent did nothing for 60 s.',
  })
  expect(control.signal.aborted).toBe(true)

  const busy = createTurnControl({ timeoutMs: 600_000, stallMs: 60_000 })
  for (let beat = 0; beat < 12; beat += 1) {
    vi.advanceTimersByTime(50_000)
    busy.alive()
  }
  expect(busy.ended()).toEqual({
    kind: 'limit',
    reason: 'timeout',
    detail: 'The turn took longer than 10 min.',
  })
})

test('the first word counts, and a closed control has no timer left', () => {
  const control = createTurnControl({ timeoutMs: 1000, stallMs: 1000 })
  control.end({ kind: 'command', reason: 'paused', detail: '' })
  control.end({ kind: 'command', reason: 'stopped_by_user', detail: '' })
  expect(control.ended()?.reason).toBe('paused')
  control.close()
  expect(vi.getTimerCount()).toBe(0)
})
