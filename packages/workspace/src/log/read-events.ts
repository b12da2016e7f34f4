import type { LogId } from '@tutti/core'
import { decodeRunEvent, type RunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'

/** An event with when it was stored, in milliseconds since the epoch. */
export interface StoredEvent<T extends RunEvent['type']> {
  readonly event: Extract<RunEvent, { type: T }>
  readonly at: number
}

/** Every event of these types that a log has now, in order, however many pages it takes; with `until`, those up to that position. */
export async function* readEvents<T extends RunEvent['type']>(
  eventLog: EventLog,
  log: LogId,
  types: readonly T[],
  signal: AbortSignal,
  until = Infinity,
): AsyncGenerator<StoredEvent<T>> {
  for (let from = 0; ;) {
    const page = await eventLog.read(log, from, { types }, signal)
    for (const record of page.records) {
      if (record.sequence > until) return
      yield { event: decodeRunEvent(record) as StoredEvent<T>['event'], at: record.at }
    }
    if (page.next >= Math.min(page.head.last, until) || page.next === from) return
    from = page.next
  }
}
