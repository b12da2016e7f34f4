import type { LogId } from '@tutti/core'
import { decodeRunEvent, type RunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'

/** An event with its place in the log, and when it was stored, in milliseconds since the epoch. */
export interface StoredEvent<T extends RunEvent['type']> {
  readonly event: Extract<RunEvent, { type: T }>
  readonly sequence: number
  readonly at: number
}

export interface ReadEventsOptions {
  /** The position to read from. Default 0: all. */
  readonly from?: number
  /** The last position to read. */
  readonly until?: number
  /** What `EventLog.read` says of it. */
  readonly unchecked?: boolean
}

/** Every event of these types that a log has now, in order, however many pages it takes. */
export async function* readEvents<T extends RunEvent['type']>(
  eventLog: EventLog,
  log: LogId,
  types: readonly T[],
  signal: AbortSignal,
  { from = 0, until = Number.MAX_SAFE_INTEGER, unchecked = false }: ReadEventsOptions = {},
): AsyncGenerator<StoredEvent<T>> {
  for (let position = from; ;) {
    const page = await eventLog.read(log, position, { types, until, unchecked }, signal)
    for (const record of page.records) {
      const event = decodeRunEvent(record) as StoredEvent<T>['event']
      yield { event, sequence: record.sequence, at: record.at }
    }
    if (page.next >= Math.min(page.head.last, until) || page.next === position) return
    position = page.next
  }
}
