import type { LogId } from '@tutti/core'
import type { EventLog } from '@tutti/store'

/**
 * Looks at every record of a log, or at those up to `until`, but for those that were looked at when they were archived: that takes as long for a
 * log with a long past as for any other.
 *
 * @throws TuttiError `data_loss` that names the first one that is missing or damaged.
 */
export async function checkLog(
  eventLog: EventLog,
  log: LogId,
  signal: AbortSignal,
  until = Number.MAX_SAFE_INTEGER,
): Promise<void> {
  const { archived } = await eventLog.head(log, signal)
  for (let from = Math.min(archived, until); ;) {
    const { next, head } = await eventLog.read(log, from, { types: [], until }, signal)
    if (next >= Math.min(head.last, until) || next === from) return
    from = next
  }
}
