import { TuttiError } from '@tutti/core'

export const cancelled = (signal: AbortSignal): TuttiError =>
  new TuttiError('cancelled', 'The call was cancelled.', {}, signal.reason)

/** The promise's outcome, or `cancelled` as soon as the caller gives up; what was begun goes on unheard. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(cancelled(signal))
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
