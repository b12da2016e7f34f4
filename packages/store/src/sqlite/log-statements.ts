import type { DatabaseSync } from 'node:sqlite'
import { TuttiError, type LogId } from '@tutti/core'
import type { Appended, ArchivedRecord, LogHead, LogRecord, ReadResult } from '../event-log/port.ts'
import type { AppendAsk, ReadAsk } from './messages.ts'
import { isCorrupt } from './sqlite-errors.ts'
import { recordChecksum, recordFormat, type ChecksummedRecord } from './record-checksum.ts'

/** A filtered read looks at so many bytes, or passes over so many records, before it answers: it cannot hold the thread up. */
const [maxScannedBytes, maxPassedRecords] = [16 << 20, 200_000]

/** The event log's statements, run inside the SQLite thread; those that write expect an open transaction. */
export function createLogStatements(db: DatabaseSync) {
  const insertLog = db.prepare(
    'INSERT INTO logs (log_id, owner, last, closed, created_at) VALUES (?, ?, 0, 0, ?) ON CONFLICT DO NOTHING',
  )
  const selectLog = db.prepare('SELECT owner, last, closed, sealed FROM logs WHERE log_id = ?')
  const closeLog = db.prepare('UPDATE logs SET closed = 1 WHERE log_id = ?')
  const setLast = db.prepare('UPDATE logs SET last = ? WHERE log_id = ?')
  const setSealed = db.prepare('UPDATE logs SET sealed = max(sealed, ?) WHERE log_id = ?')
  const newest = db.prepare(
    `SELECT epoch, producer_sequence AS sequence FROM log_records WHERE log_id = ? AND producer = ?
     ORDER BY epoch DESC, producer_sequence DESC LIMIT 1`,
  )
  const stored = db.prepare(
    `SELECT min(sequence) AS first, max(sequence) AS last FROM log_records
     WHERE log_id = ? AND producer = ? AND epoch = ? AND producer_sequence = ?`,
  )
  const insertRecord = db.prepare(
    `INSERT INTO log_records (log_id, sequence, owner, type, body, at, producer, epoch, producer_sequence, format, checksum)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const columns =
    'sequence, type, body, at, producer, epoch, producer_sequence AS producerSequence, format, checksum'
  const selectRecords = db.prepare(
    `SELECT ${columns} FROM log_records WHERE log_id = ? AND sequence > ? ORDER BY sequence`,
  )
  // The places are sorted first: with the records in it, the sorting would take longer than the reading.
  const selectOfTypes = db.prepare(
    `WITH places AS MATERIALIZED (
       SELECT log_id, sequence FROM log_records INDEXED BY log_records_by_type
       WHERE log_id = ? AND sequence > ? AND sequence <= ? AND type IN (SELECT value FROM json_each(?)) ORDER BY sequence)
     SELECT ${columns} FROM places CROSS JOIN log_records USING (log_id, sequence) ORDER BY places.sequence`,
  )
  const countRecords = db.prepare(
    'SELECT count(*) AS count FROM log_records WHERE log_id = ? AND sequence > ? AND sequence <= ?',
  )

  function find(log: LogId): LogHead & { owner: string } {
    const row = selectLog.get(log) as LogRow | undefined
    if (!row) throw new TuttiError('not_found', `There is no log ${log}.`, { log })
    return { owner: row.owner, ...headOf(row) }
  }

  function expected(log: LogId, producerId: string, epoch: number): number {
    const seen = newest.get(log, producerId) as { epoch: number; sequence: number } | undefined
    if (!seen || epoch > seen.epoch) return 1
    if (epoch === seen.epoch) return seen.sequence + 1
    throw new TuttiError(
      'aborted',
      `Producer ${producerId} of log ${log} has gone on to epoch ${seen.epoch}; epoch ${epoch} must stop.`,
      { fenced: true, epoch: seen.epoch },
    )
  }

  function storedBefore({ log, producer }: AppendAsk): Appended {
    const { first, last } = stored.get(log, producer.id, producer.epoch, producer.sequence) as {
      first: number | null
      last: number | null
    }
    if (first !== null && last !== null) return { first, last, repeated: true }
    throw new TuttiError(
      'data_loss',
      `The records of append ${producer.sequence} of producer ${producer.id} in log ${log} are missing.`,
      { log },
    )
  }

  /**
   * Only the records of these types are looked at, and the others are counted.
   * Undefined when something is missing or damaged, for which every record must be looked at.
   */
  function readOf(
    types: readonly string[],
    { log, from, maxBytes, end }: Pick<ReadAsk, 'log' | 'from' | 'maxBytes'> & { readonly end: number },
  ): Pick<ReadResult, 'records' | 'next'> | undefined {
    const records: LogRecord[] = []
    let next = Math.min(end, from + maxPassedRecords)
    let bytes = 0
    try {
      const rows = selectOfTypes.iterate(log, from, next, JSON.stringify(types)) as Iterable<StoredRecord>
      for (const row of rows) {
        if (!isIntact(log, row)) return undefined
        const { sequence, type, body, at, producer, epoch } = row
        records.push({ sequence, type, body, at, producer, epoch })
        bytes += Buffer.byteLength(body)
        if (bytes < maxBytes && bytes < maxScannedBytes) continue
        next = sequence
        break
      }
      const { count } = countRecords.get(log, from, next) as { count: number }
      return count === next - from ? { records, next } : undefined
    } catch (error) {
      if (!isCorrupt(error)) throw error
      return undefined
    }
  }

  function insert(log: LogId, owner: string, record: ChecksummedRecord): void {
    const { sequence, type, body, at, producer, epoch, producerSequence } = record
    const place = [log, sequence, owner, type, body, at, producer, epoch, producerSequence] as const
    insertRecord.run(...place, recordFormat, recordChecksum(log, record))
  }

  return {
    create: (log: LogId, owner: string, at: number): void => {
      insertLog.run(log, owner, at)
    },

    append(ask: AppendAsk): Appended {
      const { log, producer, records, at } = ask
      const head = find(log)
      const next = expected(log, producer.id, producer.epoch)
      if (producer.sequence < next) return storedBefore(ask)
      if (head.closed) {
        throw new TuttiError('failed_precondition', `Log ${log} is closed; nothing can be added to it.`, {
          log,
        })
      }
      if (producer.sequence > next) {
        throw new TuttiError(
          'aborted',
          `Append ${producer.sequence} of producer ${producer.id} would leave a gap in log ${log}; go on with ${next}.`,
          { expected: next },
        )
      }
      let sequence = head.last
      for (const { type, body } of records) {
        sequence += 1
        const { id, epoch, sequence: producerSequence } = producer
        insert(log, head.owner, { sequence, type, body, at, producer: id, epoch, producerSequence })
      }
      setLast.run(sequence, log)
      return { first: head.last + 1, last: sequence, repeated: false }
    },

    unarchived(log: LogId, maxBytes: number): readonly ArchivedRecord[] {
      const { last, archived: sealed } = find(log)
      const records: ArchivedRecord[] = []
      let bytes = 0
      for (const row of selectRecords.iterate(log, sealed) as Iterable<StoredRecord>) {
        if (row.sequence !== sealed + records.length + 1 || row.sequence > last || !isIntact(log, row)) break
        const { sequence, type, body, at, producer, epoch, producerSequence } = row
        records.push({ sequence, type, body, at, producer, epoch, producerSequence })
        bytes += Buffer.byteLength(body)
        if (bytes >= maxBytes) return records
      }
      if (records.length === 0 && sealed < last) throw damagedRecord(log, sealed + 1)
      return records
    },

    archived(log: LogId, upTo: number): void {
      setSealed.run(upTo, log)
    },

    restore(log: LogId, records: readonly ArchivedRecord[]): void {
      const { owner, last } = find(log)
      const missing = records.filter(({ sequence }) => sequence > last)
      for (const [at, record] of missing.entries()) {
        if (record.sequence !== last + at + 1)
          throw new TuttiError('out_of_range', `Log ${log} ends at ${last}; the segment leaves a gap.`, {
            last,
          })
        insert(log, owner, record)
      }
      const end = Math.max(last, records.at(-1)?.sequence ?? 0)
      setLast.run(end, log)
      setSealed.run(end, log)
    },

    close(log: LogId): void {
      find(log)
      closeLog.run(log)
    },

    expected(log: LogId, producerId: string, epoch: number): number {
      find(log)
      return expected(log, producerId, epoch)
    },

    head(log: LogId): LogHead {
      const { last, closed, archived } = find(log)
      return { last, closed, archived }
    },

    heads(logs: readonly LogId[]): ReadonlyMap<LogId, LogHead> {
      const found = new Map<LogId, LogHead>()
      for (const log of logs) {
        const row = selectLog.get(log) as LogRow | undefined
        if (row) found.set(log, headOf(row))
      }
      return found
    },

    read({ log, from, maxBytes, until, types, unchecked }: ReadAsk): ReadResult {
      const { last, closed, archived } = find(log)
      const head = { last, closed, archived }
      const end = Math.min(last, until)
      if (from > last) {
        throw new TuttiError('out_of_range', `Log ${log} ends at ${last}; position ${from} lies beyond it.`, {
          last,
        })
      }
      const few = types && unchecked && readOf(types, { log, from, maxBytes, end })
      if (few) return { ...few, head }
      const wanted = types && new Set(types)
      const records: LogRecord[] = []
      let next = from
      let bytes = 0
      let scanned = 0
      try {
        // The rows are those of the same instant as the head: a reader runs inside one read transaction.
        for (const row of selectRecords.iterate(log, from) as Iterable<StoredRecord>) {
          if (row.sequence !== next + 1 || row.sequence > end || !isIntact(log, row)) break
          next = row.sequence
          const size = Buffer.byteLength(row.body)
          scanned += size
          if (!wanted || wanted.has(row.type)) {
            const { sequence, type, body, at, producer, epoch } = row
            records.push({ sequence, type, body, at, producer, epoch })
            bytes += size
          }
          if (bytes >= maxBytes || scanned >= maxScannedBytes) return { records, next, head }
        }
      } catch (error) {
        // A damaged page of the file: the next record cannot be read. What came before is delivered first, too.
        if (!isCorrupt(error)) throw error
      }
      if (next === from && next < end) {
        throw damagedRecord(log, next + 1)
      }
      return { records, next, head }
    },
  }
}

interface LogRow {
  readonly owner: string
  readonly last: number
  readonly closed: number
  readonly sealed: number
}

const headOf = ({ last, closed, sealed }: LogRow): LogHead => ({
  last,
  closed: closed === 1,
  archived: sealed,
})

const damagedRecord = (log: LogId, sequence: number): TuttiError =>
  new TuttiError('data_loss', `Record ${sequence} of log ${log} is missing or damaged.`, { log, sequence })

interface StoredRecord extends ChecksummedRecord {
  readonly format: number
  readonly checksum: number
}

const isIntact = (log: LogId, row: StoredRecord): boolean =>
  typeof row.body === 'string' && row.format === recordFormat && row.checksum === recordChecksum(log, row)
