import type { LogId } from '@tutti/core'

/**
 * Who appends. A producer numbers its appends from 1 without gaps, so that a repeat is recognised. An `epoch` fences: an append
 * with an older epoch than the log has seen from the same `id` is refused (`sandbox`: the incarnation).
 */
export interface Producer {
  /** `sandbox`, `workflow/{runId}` or `client/{key}` (design §5). */
  readonly id: string
  readonly epoch: number
  /** Number of this append, from 1 within (id, epoch). */
  readonly sequence: number
}

/** An event before it has a place. `body` is opaque to the log: the JSON text of a RunEvent. */
export interface NewRecord {
  /** The RunEvent's type; kept apart so that a reader can filter without parsing. */
  readonly type: string
  readonly body: string
}

/** A stored event. `sequence` counts from 1 without gaps in its log. */
export interface LogRecord extends NewRecord {
  readonly sequence: number
  /** When it was stored, in milliseconds since the epoch. */
  readonly at: number
  /** Id and epoch of the producer. */
  readonly producer: string
  readonly epoch: number
}

/** A record with everything that the log has of it, so that another log can have it back as it was. */
export interface ArchivedRecord extends LogRecord {
  /** Of the append that it came with. */
  readonly producerSequence: number
}

export interface Appended {
  /** Sequence numbers of the first and the last stored record of this append. */
  readonly first: number
  readonly last: number
  /** This append was stored before; the numbers are those of then. */
  readonly repeated: boolean
}

export interface LogHead {
  /** Sequence number of the last record; 0 when there is none. */
  readonly last: number
  readonly closed: boolean
  /** Records up to here lie in the archive too: each was whole when it came there. */
  readonly archived: number
}

export interface ReadOptions {
  /** Wait up to this many milliseconds for a first record when there is none yet. Default 0: answer at once. */
  readonly waitMs?: number
  /** Stop after the record that reaches this many bytes of body. Default 1 MiB. */
  readonly maxBytes?: number
  /** Read no further than this position, and do not wait beyond it. */
  readonly until?: number
  /** Only records of these types; numbers then have holes, and `next` says where to go on. */
  readonly types?: readonly string[]
  /**
   * With `types`: the other records are counted and not looked at, some ten times as fast. One that is missing is `data_loss`, one
   * that is damaged is not noticed, also when the damage is to its type. Default false.
   */
  readonly unchecked?: boolean
}

export interface ReadResult {
  readonly records: readonly LogRecord[]
  /** Read on from here; equals `from` when nothing was there. */
  readonly next: number
  readonly head: LogHead
}

/**
 * The run logs: one append-only sequence of events for each agent and each ensemble (design §7), the source of truth for what
 * happened (seed 003).
 */
export interface EventLog {
  /**
   * Creates the log of an agent or ensemble for its owner; does nothing when it is there.
   */
  create(log: LogId, owner: string, signal: AbortSignal): Promise<void>

  /**
   * Stores the records, in order and together, and answers once they are durable (fsync).
   *
   * The same producer, epoch and sequence again gives the first answer (`repeated`).
   * @throws TuttiError `aborted` for a gap (detail `expected`) or an older epoch (detail `fenced`); `not_found` for an unknown
   *   log; `failed_precondition` for a closed one; `unavailable` when the store fails: then nothing was stored.
   */
  append(
    log: LogId,
    producer: Producer,
    records: readonly NewRecord[],
    signal: AbortSignal,
  ): Promise<Appended>

  /** The number that this producer's next append must have; 1 for a new producer or epoch. */
  expected(log: LogId, producerId: string, epoch: number, signal: AbortSignal): Promise<number>

  /**
   * Records after position `from` (0 is the start). Level-triggered: a waiting reader is woken and reads again from where it
   * stands, so that nothing is lost between history and live, whichever process appended.
   *
   * @throws TuttiError `not_found` for an unknown log; `out_of_range` for a position beyond the end; `data_loss` when a record
   *   is missing or damaged (detail `sequence`): records before it are delivered first.
   */
  read(log: LogId, from: number, options: ReadOptions, signal: AbortSignal): Promise<ReadResult>

  /** @throws TuttiError `not_found`. */
  head(log: LogId, signal: AbortSignal): Promise<LogHead>

  /**
   * Gives the oldest records that are not in the archive yet to `write`, which stores them, and remembers that they are when it has
   * returned. Two at once give the same records to both.
   *
   * @returns whether there were any
   * @throws TuttiError `not_found`, `data_loss` as {@link read}; whatever `write` throws.
   */
  archiveSegment(
    log: LogId,
    write: (records: readonly ArchivedRecord[]) => Promise<void>,
    signal: AbortSignal,
  ): Promise<boolean>

  /** For sweeps, across owners: logs with records that are not in the archive, and that are still since the given time or have so many of them. */
  listUnarchived(
    stillSince: number,
    orMoreThan: number,
    signal: AbortSignal,
  ): Promise<readonly { readonly log: LogId; readonly owner: string }[]>

  /**
   * Puts records of the archive back into a log that ends before them; those that it has are passed over. They count as archived.
   * @throws TuttiError `not_found`; `out_of_range` when there would be a gap.
   */
  restoreSegment(log: LogId, records: readonly ArchivedRecord[], signal: AbortSignal): Promise<void>

  /** No append after this; readers at the end are told. Idempotent. */
  close(log: LogId, signal: AbortSignal): Promise<void>
}
