import type { Clock } from './clock.ts'
import { TuttiError } from './errors.ts'

/** The machine's own time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(TuttiError.from(abortError(signal)))
      const onAbort = () => {
        clearTimeout(timer)
        reject(TuttiError.from(abortError(signal)))
      }
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }, ms)
      signal.addEventListener('abort', onAbort, { once: true })
    }),
}

function abortError(signal: AbortSignal): Error {
  const error = new Error('aborted', { cause: signal.reason })
  error.name = 'AbortError'
  return error
}
