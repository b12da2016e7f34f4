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

type LogPage = Awaited<ReturnType<EventLog['read']>>

/** Every event of these types that a log has now, in order, however many pages it takes. */
export async function* readEvents<T extends RunEvent['type']>(
  eventLog: EventLog,
  log: LogId,
  types: readonly T[],
  signal: AbortSignal,
  { from = 0, until = Number.MAX_SAFE_INTEGER, unchecked = false }: ReadEventsOptions = {},
): AsyncGenerator<StoredEvent<T>> {
  const read = (position: number) => {
    const page = eventLog.read(log, position, { types, until, unchecked }, signal)
    // Whoever comes to it is told; nobody comes when the reader stops before.
    page.catch(() => {})
    return page
  }
  let position = from
  for (let next: Promise<LogPage> | undefined = read(position); next;) {
    const page: LogPage = await next
    const isLast = page.next >= Math.min(page.head.last, until) || page.next === position
    position = page.next
    // While this page is looked at.
    next = isLast ? undefined : read(position)
    for (const record of page.records) {
      const event = decodeRunEvent(record) as StoredEvent<T>['event']
      yield { event, sequence: record.sequence, at: record.at }
    }
  }
}
