import type { Clock } from '@tutti/core'

/** Keeps regular captures from taking more than a tenth of the time, however large the workspace is. */
export interface CapturePace {
  isDue(): boolean
  run<T>(capture: () => Promise<T>): Promise<T>
}

const restFactor = 9
/** One that has a lot to store says nothing of how long the next takes, in milliseconds. */
const maxRestMs = 30_000

export function createCapturePace(clock: Pick<Clock, 'monotonic'>): CapturePace {
  let dueAt = 0
  return {
    isDue: () => clock.monotonic() >= dueAt,
    async run(capture) {
      const from = clock.monotonic()
      try {
        return await capture()
      } finally {
        const now = clock.monotonic()
        dueAt = now + Math.min(restFactor * (now - from), maxRestMs)
      }
    },
  }
}
