import type { ErrorCode, ErrorDetail, LogId } from '@tutti/core'
import type { Appended, ArchivedRecord, LogHead, NewRecord, Producer, ReadResult } from '../event-log/port.ts'
import type { SqlResult, SqlStatement } from '../catalog/sql-executor.ts'

/** What the SQLite thread can be asked; the key is the request's kind. Reads do not wait for the group commit of writes. */
export interface ReadRequests {
  expected: { ask: { log: LogId; producerId: string; epoch: number }; answer: number }
  head: { ask: { log: LogId }; answer: LogHead }
  heads: { ask: { logs: readonly LogId[] }; answer: ReadonlyMap<LogId, LogHead> }
  read: { ask: ReadAsk; answer: ReadResult }
  unarchived: { ask: { log: LogId; maxBytes: number }; answer: readonly ArchivedRecord[] }
  query: { ask: SqlStatement; answer: SqlResult }
}

export interface WriteRequests {
  create: { ask: { log: LogId; owner: string; at: number }; answer: void }
  append: { ask: AppendAsk; answer: Appended }
  close: { ask: { log: LogId }; answer: void }
  archived: { ask: { log: LogId; upTo: number }; answer: void }
  restore: { ask: { log: LogId; records: readonly ArchivedRecord[] }; answer: void }
  batch: { ask: readonly SqlStatement[]; answer: readonly SqlResult[] }
}

export type Requests = ReadRequests & WriteRequests
export type RequestKind = keyof Requests

export interface ReadAsk {
  readonly log: LogId
  readonly from: number
  readonly maxBytes: number
  readonly until: number
  readonly types?: readonly string[]
  readonly unchecked?: boolean
}

export interface AppendAsk {
  readonly log: LogId
  readonly producer: Producer
  readonly records: readonly NewRecord[]
  readonly at: number
}

export interface Request {
  readonly id: number
  readonly kind: RequestKind
  readonly ask: unknown
}

/** A TuttiError as it crosses the thread boundary. */
export interface ThreadError {
  readonly code: ErrorCode
  readonly message: string
  readonly detail: ErrorDetail
  readonly cause: string
}

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: ThreadError }

export type ToThread =
  | { readonly type: 'requests'; readonly requests: readonly Request[] }
  /** Whether to report commits of other processes. */
  | { readonly type: 'watch'; readonly on: boolean }
  | { readonly type: 'stop' }

export type FromThread =
  | { readonly type: 'ready' }
  | { readonly type: 'refused'; readonly error: ThreadError }
  | { readonly type: 'answers'; readonly answers: readonly Answer[] }
  /** Another process has committed something. */
  | { readonly type: 'changed' }
  | { readonly type: 'stopped' }

export interface ThreadData {
  readonly path: string
  readonly migrations: readonly CompiledMigration[]
  /** How often to look for commits of other processes while watching, in milliseconds. */
  readonly pollMs: number
}

export interface CompiledMigration {
  readonly format: number
  readonly statements: readonly SqlStatement[]
}
