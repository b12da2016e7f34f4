import { Context } from '@temporalio/activity'

/** The signal of the running activity: aborts when the workflow cancels it or the worker shuts down. */
export const cancellationSignal = (): AbortSignal => Context.current().cancellationSignal
