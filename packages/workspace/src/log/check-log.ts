import type { LogId } from '@tutti/core'
import type { EventLog } from '@tutti/store'

export interface CheckLogOptions {
  /** The last position to look at. */
  readonly until?: number
  /** Where to begin: those before were looked at some time. Default: all of it. */
  readonly from?: number
}

/**
 * Looks at every record of a log, also at those that nobody wants.
 *
 * @throws TuttiError `data_loss` that names the first one that is missing or damaged.
 */
export async function checkLog(
  eventLog: EventLog,
  log: LogId,
  { until = Number.MAX_SAFE_INTEGER, from = 0 }: CheckLogOptions,
  signal: AbortSignal,
): Promise<void> {
  for (let position = Math.min(from, until); ;) {
    const { next, head } = await eventLog.read(log, position, { types: [], until }, signal)
    if (next >= Math.min(head.last, until) || next === position) return
    position = next
  }
}
