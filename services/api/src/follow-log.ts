import type { LogId } from '@tutti/core'
import { decodeOffset } from '@tutti/protocol'
import type { EventLog, LogHead, LogRecord, ReadResult } from '@tutti/store'

import type { SharedReads } from './shared-reads.ts'

/** What one look at a log gave. */
export interface Followed {
  readonly records: readonly LogRecord[]
  /** Position after the records. */
  readonly position: number
  /** The reader has all that there is at this moment. */
  readonly atHead: boolean
  /** Nothing came for as long as a heartbeat takes. */
  readonly idle: boolean
  /** Nothing will come any more. */
  readonly closed: boolean
}

/**
 * The one way in which the API reads a log (design §3): everything after `from`, then what is appended, for as long as the caller
 * goes on. Holds a position and one batch, never a queue: a slow caller is simply further back in the stored log. Answers at least
 * once, at once; later when records came or it is time for a heartbeat (10 s ± 20 %, design §11.11).
 */
export async function* followLog(
  reads: SharedReads,
  log: LogId,
  from: number,
  heartbeatMs: number,
  signal: AbortSignal,
): AsyncGenerator<Followed, void, undefined> {
  let position = from
  let atHead = false
  for (;;) {
    const waitMs = heartbeatMs * (0.8 + 0.4 * Math.random())
    const result: ReadResult | undefined = atHead
      ? await reads.next(log, position, waitMs, signal)
      : await reads.read(log, position, signal)
    if (!result) {
      yield { records: [], position, atHead, idle: true, closed: false }
      continue
    }
    const { records, next }: ReadResult = result
    const head: LogHead = result.head
    position = next
    atHead = position >= head.last
    yield { records, position, atHead, idle: false, closed: atHead && head.closed }
  }
}

/**
 * Where a reader begins. A missing offset is the start; an empty one is no offset (STR-04).
 *
 * @throws TuttiError `invalid_argument` for what is no offset of this log; `out_of_range` beyond its end.
 */
export async function startPosition(
  eventLog: EventLog,
  log: LogId,
  offset: string | undefined,
  signal: AbortSignal,
  field = 'offset_key',
): Promise<number> {
  if (offset === undefined) return 0
  const position = decodeOffset(log, offset, field)
  // Asking for nothing makes the log say whether the position lies beyond its end.
  await eventLog.read(log, position, { maxBytes: 1 }, signal)
  return position
}
