import type { LogId } from '@tutti/core'
import type { EventLog, LogRecord } from '@tutti/store'

/** Every record of these types that the log has now, oldest first. */
export async function* readRecords(
  eventLog: EventLog,
  log: LogId,
  types: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<LogRecord, void, undefined> {
  for (let from = 0; ;) {
    const { records, next, head } = await eventLog.read(log, from, { types }, signal)
    yield* records
    if (next >= head.last || next === from) return
    from = next
  }
}
