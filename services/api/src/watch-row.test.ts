import { expect, test, vi } from 'vitest'

import type { HandlerDeps } from './handler.ts'
import { watchRow } from './watch-row.ts'

const { signal } = new AbortController()

async function watch(...positions: readonly number[]) {
  let now = 0
  const read = vi.fn<() => Promise<{ logSequence: number }>>()
  for (const logSequence of positions) read.mockResolvedValueOnce({ logSequence })
  read.mockResolvedValue({ logSequence: positions.at(-1)! })
  const clock = {
    now: () => now,
    monotonic: () => now,
    sleep: async (ms: number) => {
      now += ms
    },
  }
  const warn = vi.fn<() => void>()
  const { reached } = await watchRow({ clock, log: { warn } as unknown as HandlerDeps['log'] }, read, signal)
  return { reached, read, warn, now: () => now }
}

test('what the reader found recorded costs no look', async () => {
  const { reached, read } = await watch(3)
  await reached(3)
  expect(read).toHaveBeenCalledTimes(1)
})

test('it looks until the row is there, and remembers how far that was', async () => {
  const { reached, read, warn } = await watch(3, 3, 4, 7)
  await reached(6)
  await reached(7)
  expect(read).toHaveBeenCalledTimes(4)
  expect(warn).not.toHaveBeenCalled()
})

test('a row that stays behind is not waited for longer than 5 s, in few looks, and the log says so', async () => {
  const { reached, read, warn, now } = await watch(3)
  await reached(4)
  expect(now()).toBeGreaterThanOrEqual(5000)
  expect(now()).toBeLessThan(5400)
  expect(read.mock.calls.length).toBeLessThan(25)
  expect(warn).toHaveBeenCalledTimes(1)
})
