import { TuttiError } from './errors.ts'

/** Whatever the signal's reason is (a timeout, Temporal's own error), to a caller it is `cancelled`; the reason is its cause. */
export const cancelledBy = (signal: AbortSignal): TuttiError =>
  new TuttiError('cancelled', 'The call was cancelled.', {}, signal.reason)

/** @throws TuttiError `cancelled` once the signal has aborted. */
export function throwIfCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw cancelledBy(signal)
}

/**
 * The promise's outcome, or `cancelled` as soon as the caller gives up; what was begun goes on unheard.
 *
 * @throws TuttiError `cancelled`, and what the promise rejects with.
 */
export function orCancelled<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(cancelledBy(signal))
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
