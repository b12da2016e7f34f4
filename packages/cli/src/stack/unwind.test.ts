import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { unwind } from './unwind.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

test('ends the last first, and the rest also after one that fails', async () => {
  const ended: string[] = []
  const lines: string[] = []
  const step = (what: string) => ({ what, end: async () => void ended.push(what) })
  const failing = { what: 'the API', end: () => Promise.reject(new Error('port in use')) }
  await unwind([step('the database'), failing, step('the worker')], (line) => lines.push(line))
  expect(ended).toEqual(['the worker', 'the database'])
  expect(lines).toEqual([expect.stringMatching(/^While stopping: /)])
  expect(vi.getTimerCount()).toBe(0)
})

test('names what takes long, and keeps the process until it is done', async () => {
  const lines: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const ending = unwind([{ what: 'the worker', end: () => promise }], (line) => lines.push(line))
  await vi.advanceTimersByTimeAsync(61_000)
  expect(lines).toEqual(['Still ending the worker.', 'Still ending the worker.'])
  expect(vi.getTimerCount()).toBe(1)
  resolve()
  await ending
  expect(vi.getTimerCount()).toBe(0)
})
