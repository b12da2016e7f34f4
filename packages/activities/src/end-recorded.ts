import { activityInfo } from '@temporalio/activity'
import { CancelledFailure } from '@temporalio/common'
import { TuttiError, type LogId } from '@tutti/core'
import type { DeliverResult } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { isPermanent } from './fail.ts'
import { recordDelivery } from './record-delivery.ts'

/**
 * Runs a delivery so that it ends in an event whatever happens: what fails for good, or at the last try, is recorded as a refusal is.
 * Whoever asked waits for that event.
 */
export async function endRecorded(
  deps: Pick<ActivityDeps, 'crashPoint' | 'eventLog' | 'log'>,
  request: { readonly log: LogId; readonly requestId: string },
  signal: AbortSignal,
  deliver: () => Promise<DeliverResult>,
): Promise<DeliverResult> {
  try {
    return await deliver()
  } catch (thrown) {
    const error = TuttiError.from(thrown)
    const { attempt, retryPolicy } = activityInfo()
    const isLast = attempt >= (retryPolicy?.maximumAttempts ?? Infinity)
    if (signal.aborted || thrown instanceof CancelledFailure || (!isPermanent(error.code) && !isLast))
      throw thrown
    deps.log.warn({ err: error, log: request.log }, 'a delivery failed for good')
    const detail = error.message.slice(0, 2048)
    return await recordDelivery(
      deps,
      request,
      { outcome: 'failed', failure: 'forge_unavailable', detail },
      signal,
    )
  }
}
