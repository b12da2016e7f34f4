import type { Reason } from '@tutti/core'
import { reasons } from '@tutti/core'
import {
  ActivityFailure,
  ApplicationFailure,
  ChildWorkflowFailure,
  TimeoutFailure,
  isCancellation,
} from '@temporalio/workflow'

/** How an activity or child failed, in words of the closed list. */
export interface Failure {
  readonly reason: Reason
  readonly detail: string
  /** Nothing of the sandbox can be relied on any more; the turn goes through recovery. */
  readonly sandboxLost: boolean
  /** Nothing ran, or the worker handed over in good order: not counted against the restarts. */
  readonly planned: boolean
}

/**
 * Reads a failure that reached the workflow; undefined for a cancellation. Activities fail with an ApplicationFailure whose type
 * is the reason. A heartbeat or start timeout means that the worker, and with it a local sandbox, is gone.
 */
export function readFailure(thrown: unknown): Failure | undefined {
  if (isCancellation(thrown)) return undefined
  if (!(thrown instanceof ActivityFailure) && !(thrown instanceof ChildWorkflowFailure)) throw thrown
  let { cause } = thrown
  // A child that failed by an activity of its own wraps that failure.
  while (cause instanceof ActivityFailure) cause = cause.cause
  if (cause instanceof TimeoutFailure) {
    const neverBegan = cause.timeoutType === 'SCHEDULE_TO_START'
    const sandboxLost = neverBegan || cause.timeoutType === 'HEARTBEAT'
    return {
      reason: sandboxLost ? 'sandbox_lost' : 'timeout',
      detail: cause.message,
      sandboxLost,
      planned: neverBegan,
    }
  }
  if (cause instanceof ApplicationFailure) {
    const reason = cause.type && Object.hasOwn(reasons, cause.type) ? (cause.type as Reason) : 'internal'
    const planned = cause.details?.[0] === 'planned'
    return { reason, detail: cause.message, sandboxLost: reason === 'sandbox_lost', planned }
  }
  return { reason: 'internal', detail: cause?.message ?? thrown.message, sandboxLost: false, planned: false }
}
