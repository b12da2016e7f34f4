export type {
  Appended,
  ArchivedRecord,
  EventLog,
  LogHead,
  LogRecord,
  NewRecord,
  Producer,
  ReadOptions,
  ReadResult,
} from './event-log/port.ts'
export type {
  AgentCatalog,
  AgentProjection,
  AgentRow,
  AttemptCatalog,
  BlobRefCatalog,
  Catalog,
  EnsembleCatalog,
  EnsembleRow,
  IdempotencyCatalog,
  LeaseCatalog,
  LeaseRow,
  NewAgent,
  NewEnsemble,
  Page,
  PageRequest,
  PullRequestCatalog,
  PullRequestRow,
  RepositoryCatalog,
  RepositoryRow,
  SavedState,
} from './catalog/port.ts'
export { createSqliteStore, type SqliteStore, type SqliteStoreOptions } from './sqlite/sqlite-store.ts'
export { createCrashPoints } from './crash-points.ts'
export { repositoryLocation } from './catalog/repository-location.ts'
export { sealLogs } from './log-archive/seal-logs.ts'
export { rebuildLogs, type RebuiltLog } from './log-archive/rebuild-logs.ts'
