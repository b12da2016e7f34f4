import { expect, test } from 'vitest'

import { createProjectionWait } from './projection-wait.ts'

const { signal } = new AbortController()

function waitOver(positions: readonly number[]) {
  let now = 0
  let looks = 0
  const clock = {
    now: () => now,
    monotonic: () => now,
    sleep: async (ms: number) => {
      now += ms
    },
  }
  const read = async () => ({ logSequence: positions[Math.min((looks += 1), positions.length) - 1]! })
  return { wait: createProjectionWait(read, { logSequence: 3 }, clock), looks: () => looks, now: () => now }
}

test('what the reader found recorded costs no look', async () => {
  const { wait, looks } = waitOver([])
  await wait(3, signal)
  expect(looks()).toBe(0)
})

test('it looks until the catalog is there, and remembers how far that was', async () => {
  const { wait, looks } = waitOver([3, 4, 7])
  await wait(6, signal)
  expect(looks()).toBe(3)
  await wait(7, signal)
  expect(looks()).toBe(3)
})

test('a catalog that stays behind is not waited for longer than 5 s', async () => {
  const { wait, now } = waitOver([3])
  await wait(4, signal)
  expect(now()).toBe(5000)
})
