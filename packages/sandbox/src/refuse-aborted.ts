import { TuttiError } from '@tutti/core'

/** @throws TuttiError `cancelled`, whatever the reason of the abort was. */
export function refuseAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new TuttiError('cancelled', 'The call was cancelled.', {}, signal.reason)
}
