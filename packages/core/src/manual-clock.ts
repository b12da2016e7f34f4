import { cancelledBy } from './cancellation.ts'
import type { Clock } from './clock.ts'

/** A clock that stands still until it is advanced; for tests. */
export interface ManualClock extends Clock {
  /** Moves time forward and wakes the sleepers that are due, in order. */
  advance(ms: number): void
}

export function createManualClock(startMs = 0): ManualClock {
  let time = startMs
  const sleepers = new Set<{ due: number; wake: () => void }>()
  return {
    now: () => time,
    monotonic: () => time - startMs,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const cancel = () => reject(cancelledBy(signal))
        if (signal.aborted) return cancel()
        if (ms <= 0) return resolve()
        const onAbort = () => {
          sleepers.delete(sleeper)
          cancel()
        }
        const wake = () => {
          signal.removeEventListener('abort', onAbort)
          resolve()
        }
        const sleeper = { due: time + ms, wake }
        sleepers.add(sleeper)
        signal.addEventListener('abort', onAbort, { once: true })
      }),
    advance(ms) {
      time += ms
      for (const sleeper of [...sleepers].sort((left, right) => left.due - right.due)) {
        if (sleeper.due > time) continue
        sleepers.delete(sleeper)
        sleeper.wake()
      }
    },
  }
}
