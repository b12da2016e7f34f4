export { startWorker, type RunningWorker, type WorkerOptions } from './start-worker.ts'
export type { TemporalAccess } from './temporal-access.ts'
export type { WorkerConfig } from './worker-config.ts'
