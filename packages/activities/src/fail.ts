import { TuttiError, type ErrorCode, type Interruption, type Reason } from '@tutti/core'
import { ApplicationFailure, CancelledFailure } from '@temporalio/common'
import { cancellationSignal } from './cancellation.ts'

/** A failure that the workflow reads by its reason; never tried again by Temporal. */
export function failWith(reason: Reason, message: string, ...details: unknown[]): ApplicationFailure {
  return ApplicationFailure.create({
    type: reason,
    message: message.slice(0, 2048),
    nonRetryable: true,
    details,
  })
}

/** The sandbox is gone, or given up in good order: only `lost` counts against the restarts. */
export const sandboxLost = (message: string, why: Interruption = 'lost'): ApplicationFailure =>
  failWith('sandbox_lost', message, ...(why === 'lost' ? [] : ['planned', why]))

const permanent: Partial<Record<ErrorCode, Reason>> = {
  data_loss: 'data_loss',
  invalid_argument: 'internal',
  not_found: 'internal',
  failed_precondition: 'setup_failed',
}

/** Whether trying again cannot help. */
export const isPermanent = (code: ErrorCode): boolean => permanent[code] !== undefined

/**
 * While an agent is being set up, what fails is what was asked for (a repository, a ref, a mount) rather than a part of ours. It is
 * final: the workflow tries it once.
 */
export const setupReasons: Partial<Record<ErrorCode, Reason>> = {
  ...permanent,
  invalid_argument: 'setup_failed',
  not_found: 'setup_failed',
  permission_denied: 'setup_failed',
  deadline_exceeded: 'setup_failed',
  unavailable: 'setup_failed',
}

/**
 * Runs an activity's body and turns what it throws into what Temporal should do: give up with a reason, end as cancelled, or try
 * again.
 */
export async function orFail<T>(body: () => Promise<T>, reasons = permanent): Promise<T> {
  try {
    return await body()
  } catch (thrown) {
    if (thrown instanceof ApplicationFailure || thrown instanceof CancelledFailure) throw thrown
    const error = TuttiError.from(thrown)
    // Only what Temporal asked for is a stop; a limit or an end of our own would be taken for one by the workflow.
    if (error.code === 'cancelled' && cancellationSignal().aborted) throw new CancelledFailure(error.message)
    const reason = reasons[error.code]
    if (reason) throw failWith(reason, error.message)
    throw ApplicationFailure.create({
      type: 'internal',
      message: error.message,
      cause: error.cause instanceof Error ? error.cause : error,
    })
  }
}
