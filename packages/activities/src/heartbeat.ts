import { Context } from '@temporalio/activity'

/**
 * Runs the body with heartbeats on entry and by timer, so that a cancel is heard and a lost worker is noticed. The details name
 * the phase, so that a timeout says where it hung.
 */
export async function withHeartbeat<T>(
  heartbeatMs: number,
  body: (signal: AbortSignal, phase: (name: string) => void, cancelCause: () => CancelCause) => Promise<T>,
): Promise<T> {
  // Kept: an abort listener runs outside the activity's context.
  const context = Context.current()
  let current = 'start'
  const beat = () => context.heartbeat({ phase: current })
  beat()
  // Three beats within one timeout: one may be lost or late without the activity being taken for dead.
  const timer = setInterval(beat, Math.max(100, heartbeatMs / 3))
  try {
    return await body(
      context.cancellationSignal,
      (name) => {
        current = name
        beat()
      },
      () => causeOf(context),
    )
  } finally {
    clearInterval(timer)
  }
}

/**
 * Beats while a short step runs, so that a worker lost in the middle of it is noticed at once and not at the step's own limit. Does
 * nothing where the workflow asked for no heartbeats; a step that ends within a third of the limit costs none.
 */
export function keepAlive<I, O>(step: (input: I) => Promise<O>): (input: I) => Promise<O> {
  return async (input) => {
    const context = Context.current()
    const { heartbeatTimeoutMs } = context.info
    if (!heartbeatTimeoutMs) return step(input)
    const timer = setInterval(() => context.heartbeat(), Math.max(100, heartbeatTimeoutMs / 3))
    try {
      return await step(input)
    } finally {
      clearInterval(timer)
    }
  }
}

/** Why an activity was asked to end: a stop by the workflow, a worker that shuts down, or another attempt that took over. */
export type CancelCause = 'stopped' | 'shutdown' | 'replaced'

function causeOf({ cancellationDetails: details }: Context): CancelCause {
  if (details?.workerShutdown) return 'shutdown'
  return details?.notFound || details?.timedOut ? 'replaced' : 'stopped'
}
