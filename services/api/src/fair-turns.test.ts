import { setTimeout } from 'node:timers/promises'
import { performance } from 'node:perf_hooks'
import { expect, test } from 'vitest'

import { createFairTurns } from './fair-turns.ts'

test('many streams that never run out of work leave the event loop to others, and all come on', async () => {
  const turns = createFairTurns(5)
  const streams = 50
  let stopped = false
  const steps = Array.from({ length: streams }, () => 0)
  const busy = steps.map(async (_, index) => {
    while (!stopped) {
      const until = performance.now() + 0.2
      while (performance.now() < until);
      steps[index]! += 1
      await turns.next()
    }
  })
  // Without turns the first timer would never fire.
  for (let count = 0; count < 40; count += 1) await setTimeout(1)
  while (Math.min(...steps) < 20) await setTimeout(1)
  stopped = true
  await Promise.all(busy)
  expect(Math.min(...steps)).toBeGreaterThan(Math.max(...steps) / 10)
})
