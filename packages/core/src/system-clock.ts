import { cancelledBy } from './cancellation.ts'
import type { Clock } from './clock.ts'

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(cancelledBy(signal))
      const onAbort = () => {
        clearTimeout(timer)
        reject(cancelledBy(signal))
      }
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }, ms)
      signal.addEventListener('abort', onAbort, { once: true })
    }),
}
