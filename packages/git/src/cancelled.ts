import { TuttiError } from '@tutti/core'

/** Whatever the reason is (a timeout, Temporal's own error), to a caller it is `cancelled`. */
export const cancelledBy = (signal: AbortSignal): TuttiError =>
  new TuttiError('cancelled', 'The call was cancelled.', {}, signal.reason)

export function throwIfCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw cancelledBy(signal)
}

/** What `work` gives, or `cancelled` as soon as the signal aborts; the work itself goes on for others who wait for it. */
export async function waitFor<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  throwIfCancelled(signal)
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(cancelledBy(signal))
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
