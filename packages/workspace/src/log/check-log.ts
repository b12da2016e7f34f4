import type { LogId } from '@tutti/core'
import type { EventLog } from '@tutti/store'

/**
 * Looks at every record of a log, or at those up to `until`.
 *
 * @throws TuttiError `data_loss` that names the first one that is missing or damaged.
 */
export async function checkLog(
  eventLog: EventLog,
  log: LogId,
  signal: AbortSignal,
  until = Number.MAX_SAFE_INTEGER,
): Promise<void> {
  for (let from = 0; ;) {
    const { next, head } = await eventLog.read(log, from, { types: [], until }, signal)
    if (next >= Math.min(head.last, until) || next === from) return
    from = next
  }
}
