import type { Generated } from 'kysely'
import type { AgentId, AgentStatus, BlobId, EnsembleId, EnsemblePhase, LogId, Reason } from '@tutti/core'

/**
 * The tables, for every SQL adapter. Times are milliseconds since the epoch, flags are 0 or 1, JSON is text: types that SQLite
 * and PostgreSQL store alike. Every table has an `owner`.
 */
export interface Schema {
  logs: LogsTable
  log_records: LogRecordsTable
  agents: AgentsTable
  ensembles: EnsemblesTable
  attempts: AttemptsTable
  pull_requests: PullRequestsTable
  leases: LeasesTable
  idempotency_keys: IdempotencyKeysTable
  blob_refs: BlobRefsTable
  blob_removals: BlobRemovalsTable
  repositories: RepositoriesTable
}

export interface LogsTable {
  log_id: LogId
  owner: string
  /** Number of the last record: a lost last record is noticed by it. */
  last: number
  closed: number
  created_at: number
  /** Number of the last record that is in the archive. */
  sealed: Generated<number>
}

/** The producers' state is derived from these rows: newest (epoch, producer_sequence) of a producer. */
export interface LogRecordsTable {
  log_id: LogId
  sequence: number
  owner: string
  type: string
  body: string
  at: number
  producer: string
  epoch: number
  producer_sequence: number
  format: number
  checksum: number
}

export interface AgentsTable {
  bc_id: AgentId
  owner: string
  ensemble_id: EnsembleId | null
  child_index: number | null
  title: string
  repository: string
  agent_spec: string
  config_blob_id: BlobId
  created_at: number
  updated_at: number
  starting: number
  /** `state.status`, for filters. */
  status: AgentStatus
  state: string
  had_sandbox: number
  incarnation: number
  turns: number
  base_commit: string | null
  commit_id: string | null
  files_changed: number
  branch: string | null
  pr_url: string | null
  log_sequence: number
  state_blob_id: BlobId | null
  state_offset_key: string | null
  state_saved_at: number | null
  state_status: AgentStatus | null
  state_version: number | null
  open_question: string | null
}

export interface EnsemblesTable {
  ensemble_id: EnsembleId
  owner: string
  title: string
  repository: string
  strategy: string
  config_blob_id: BlobId
  child_ids: string
  created_at: number
  updated_at: number
  starting: number
  phase: EnsemblePhase
  reason: Reason | null
  result_blob_id: BlobId | null
  log_sequence: number
}

export interface AttemptsTable {
  ensemble_id: EnsembleId
  bc_id: AgentId
  owner: string
  attempt: string
}

export interface PullRequestsTable {
  /** Version 7 UUID: what lists are ordered by. */
  id: string
  repository: string
  number: number
  owner: string
  url: string
  title: string
  body: string
  head: string
  head_commit: string
  base: string
  base_commit: string
  draft: number
  state: 'open' | 'closed' | 'merged'
  source: LogId
  created_at: number
  updated_at: number
}

export interface LeasesTable {
  host: string
  kind: 'agent' | 'verify'
  holder: string
  owner: string
  /** Order of arrival; times of two processes may tie or disagree. */
  place: number
  waiting_since: number
  granted_at: number | null
}

export interface IdempotencyKeysTable {
  owner: string
  key: string
  digest: string
  answer: string
  created_at: number
}

export interface BlobRefsTable {
  owner: string
  blob_id: BlobId
  /** When it was needed last; null for a blob that is kept for ever. */
  used_at: number | null
}

/** Blobs that a sweep is removing at this moment. */
export interface BlobRemovalsTable {
  blob_id: BlobId
  /** Empty: they are nobody's any more. */
  owner: string
  begun_at: number
}

export interface RepositoriesTable {
  owner: string
  name: string
  location: string
  created_at: number
}
