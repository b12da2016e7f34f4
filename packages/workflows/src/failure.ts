import type { Interruption, Reason } from '@tutti/core'
import { interruptions, reasons } from '@tutti/core'
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
  /** Where the sandbox is lost: why. Only `lost` counts against the restarts. */
  readonly why: Interruption
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
      why: neverBegan ? 'handover' : 'lost',
    }
  }
  if (cause instanceof ApplicationFailure) {
    const reason = cause.type && Object.hasOwn(reasons, cause.type) ? (cause.type as Reason) : 'internal'
    const [planned, said] = cause.details ?? []
    // Workers of before say only that it was planned.
    const why = interruptions.find((known) => known === said) ?? (planned === 'planned' ? 'handover' : 'lost')
    return { reason, detail: cause.message, sandboxLost: reason === 'sandbox_lost', why }
  }
  return { reason: 'internal', detail: cause?.message ?? thrown.message, sandboxLost: false, why: 'lost' }
}
