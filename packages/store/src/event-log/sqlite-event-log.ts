import {
  TuttiError,
  orCancelled,
  throwIfCancelled,
  type Clock,
  type CrashPoint,
  type LogId,
} from '@tutti/core'
import type { SqliteThread } from '../sqlite/sqlite-thread.ts'
import type { LogWaiter, LogWaiters } from './log-waiters.ts'
import type { EventLog, NewRecord, Producer, ReadResult } from './port.ts'

const defaultMaxBytes = 1 << 20
/** Of bodies in one segment: few objects for a long log, and one that a reader holds in memory. */
const segmentBytes = 4 << 20

const selectUnarchived = `SELECT log_id AS log, owner FROM logs WHERE sealed < last AND (
  (SELECT at FROM log_records WHERE log_records.log_id = logs.log_id AND sequence = last) < ? OR last - sealed > ?)`

/** The event log on the SQLite thread. `announce` tells other processes that a log has changed. */
export function createSqliteEventLog({
  thread,
  waiters,
  announce,
  crashPoint,
  clock,
}: {
  thread: SqliteThread
  waiters: LogWaiters
  announce: (log: LogId) => void
  crashPoint: CrashPoint
  clock: Clock
}): EventLog {
  function changed(log: LogId): void {
    waiters.wake(log)
    announce(log)
  }

  /** Runs the step unless the caller gave up before; the change is told even when they give up later. */
  function change<T>(log: LogId, signal: AbortSignal, step: () => Promise<T>): Promise<T> {
    throwIfCancelled(signal)
    const done = step().then((value) => {
      changed(log)
      return value
    })
    return orCancelled(done, signal)
  }

  return {
    async create(log, owner, signal) {
      await change(log, signal, () => thread.call('create', { log, owner, at: clock.now() }))
    },

    async append(log, producer, records, signal) {
      checkAppend(producer, records)
      return change(log, signal, () =>
        crashPoint('log.append', () => thread.call('append', { log, producer, records, at: clock.now() })),
      )
    },

    async expected(log, producerId, epoch, signal) {
      return orCancelled(thread.call('expected', { log, producerId, epoch }), signal)
    },

    async read(
      log,
      from,
      { waitMs = 0, maxBytes = defaultMaxBytes, until = Number.MAX_SAFE_INTEGER, types, unchecked = false },
      signal,
    ) {
      if (!Number.isSafeInteger(from) || from < 0) {
        throw new TuttiError('invalid_argument', 'A position in a log is a whole number from 0.', {
          field: 'from',
        })
      }
      const end = clock.monotonic() + waitMs
      let position = from
      for (;;) {
        throwIfCancelled(signal)
        const left = end - clock.monotonic()
        const waiter = left > 0 ? waiters.enter(log, position) : undefined
        try {
          const ask = { log, from: position, maxBytes, until, unchecked, ...(types && { types }) }
          const result: ReadResult = await orCancelled(thread.call('read', ask), signal)
          const { records, next, head } = result
          const atEnd = next === head.last
          if (records.length > 0 || next >= until || (atEnd && (head.closed || !waiter))) return result
          position = next
          // A filtered read that stopped half-way has more to look at before it may wait.
          if (atEnd && waiter) await waitFor(waiter, left, clock, signal)
        } finally {
          waiter?.leave()
        }
      }
    },

    async head(log, signal) {
      return orCancelled(thread.call('head', { log }), signal)
    },

    async archiveSegment(log, write, signal) {
      const ask = { log, maxBytes: segmentBytes }
      const records = await orCancelled(thread.call('unarchived', ask), signal)
      const last = records.at(-1)
      if (!last) return false
      await crashPoint('log.archive', () => write(records))
      await orCancelled(thread.call('archived', { log, upTo: last.sequence }), signal)
      return true
    },

    async listUnarchived(stillSince, orMoreThan, signal) {
      const statement = { sql: selectUnarchived, parameters: [stillSince, orMoreThan] }
      const { rows } = await orCancelled(thread.call('query', statement), signal)
      return rows as { log: LogId; owner: string }[]
    },

    async restoreSegment(log, records, signal) {
      await change(log, signal, () =>
        crashPoint('log.restore', () => thread.call('restore', { log, records })),
      )
    },

    async close(log, signal) {
      await change(log, signal, () => thread.call('close', { log }))
    },
  }
}

/** Until woken or out of time, whichever is first. */
async function waitFor(waiter: LogWaiter, ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  const over = new AbortController()
  try {
    const asleep = clock.sleep(ms, over.signal).catch(() => {})
    await orCancelled(Promise.race([waiter.woken, asleep]), signal)
  } finally {
    over.abort()
  }
}

function checkAppend(producer: Producer, records: readonly NewRecord[]): void {
  const { epoch, sequence } = producer
  if (!Number.isSafeInteger(epoch) || epoch < 0 || !Number.isSafeInteger(sequence) || sequence < 1) {
    throw new TuttiError('invalid_argument', 'A producer numbers its appends from 1 and its epochs from 0.', {
      field: 'producer',
    })
  }
  // An empty append would leave no record, and so no trace of its number.
  if (records.length === 0) {
    throw new TuttiError('invalid_argument', 'An append needs at least one record.', { field: 'records' })
  }
}
