import { createHash } from 'node:crypto'
import { availableParallelism, hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  createApiServer,
  createLogger,
  createMetrics,
  createTemporalGateway,
  ensureLocalKey,
  localKeyFile,
  type ApiConfig,
} from '@tutti/api'
import type { Archive, BlobStore } from '@tutti/blob-store'
import { systemClock, type CrashPoint } from '@tutti/core'
import { createLocalForge, type Forge } from '@tutti/forge'
import { createMirrors, type Mirrors } from '@tutti/git'
import { createSqliteStore, rebuildLogs, repositoryLocation, sealLogs, type SqliteStore } from '@tutti/store'
import { startWorker } from '@tutti/worker'
import { Client, Connection } from '@temporalio/client'
import { Registry } from 'prom-client'
import type { ResolvedConfig } from '../config/load-config.ts'
import { crashPointOf } from '../crash-point-of.ts'
import type { PartContext, RunningApi, StackParts } from './parts.ts'
import { createLogFile, withWarningsOn } from './server-log.ts'
import { openBlobs } from './open-blobs.ts'
import { createSystemInformation } from './system-information.ts'
import { startTelemetry, type Telemetry } from './telemetry.ts'

/** What the parts of one process share. */
interface Stores {
  readonly store: SqliteStore
  readonly blobs: BlobStore
  readonly archive: Archive
  readonly mirrors: Mirrors
  readonly forge: Forge
  readonly crashPoint: CrashPoint
  /** Metrics of every part of this process. */
  readonly registry: Registry
  readonly telemetry: Telemetry | undefined
  close(): Promise<void>
}

type Logger = ReturnType<typeof createLogger>
type Env = Readonly<Record<string, string | undefined>>

/** Bundles depend on the sources alone, so all data folders share them. */
const cacheDir = fileURLToPath(new URL('../../../../node_modules/.cache/tutti', import.meta.url))

/** The embedded stack (design §10): SQLite, filesystem blobs, local forge, Temporal's development server. */
export function createParts(env: Env = process.env): StackParts<Stores> {
  // One for all parts: what is wrong with its file is said once.
  let log: Logger | undefined
  const logOf = (context: PartContext) => (log ??= serverLog(context))
  return {
    openStores: (dataDir, config) => openStores(dataDir, config, env),
    rebuild: ({ store, blobs, archive }, signal) =>
      rebuildLogs({ ...store, blobs, archive, clock: systemClock }, signal),
    startApi: (stores, context) => startApi(stores, context, logOf(context)),
    startWorker: ({ store, blobs, mirrors, forge, crashPoint, registry, telemetry }, context) =>
      startWorker({
        temporal: context.temporal,
        stores: { ...store, blobs, mirrors, forge },
        host: hostName(context.dataDir, context.index),
        dataDir: context.dataDir,
        sandboxRoot: join(context.dataDir, 'sandboxes'),
        cacheDir,
        config: workerConfig(context.config),
        env: context.env,
        clock: systemClock,
        crashPoint,
        log: logOf(context),
        registry,
        // In one process with the API its page has the worker's metrics too.
        metricsPort: context.mode === 'serve' ? Number(context.config['worker.metrics_port']) : 0,
        tracing: telemetry !== undefined,
      }),
  }
}

async function openStores(dataDir: string, config: ResolvedConfig, env: Env): Promise<Stores> {
  const crashPoint = await crashPointOf(env, dataDir)
  const telemetry = await startTelemetry(env)
  const store = await createSqliteStore({ path: join(dataDir, 'tutti.db'), wakeDir: dataDir, crashPoint })
  const { blobs, archive, close: closeBlobs } = await openBlobs(dataDir, config, crashPoint)
  const mirrors = createMirrors({ root: join(dataDir, 'mirrors'), archive })
  const { catalog } = store
  const forge = createLocalForge({
    catalog: catalog.pullRequests,
    mirrors,
    clock: systemClock,
    urlBase: 'tutti://local',
    locate: (owner, repository, signal) =>
      repositoryLocation(catalog.repositories, owner, repository, signal),
  })
  return {
    store,
    blobs,
    archive,
    mirrors,
    forge,
    crashPoint,
    registry: new Registry(),
    telemetry,
    async close() {
      await sealLastWords(store, archive)
      await store.close()
      closeBlobs()
      await telemetry?.stop()
    },
  }
}

/** What the parts have logged while they ended. What cannot be archived in this time is archived after the next start. */
const lastWordsMs = 3000

async function sealLastWords(store: SqliteStore, archive: Archive): Promise<void> {
  const deps = { ...store, archive, clock: systemClock }
  await sealLogs(deps, -1, () => {}, AbortSignal.timeout(lastWordsMs)).catch(() => {})
}

async function startApi(
  stores: Stores,
  context: Parameters<StackParts['startApi']>[1],
  log: Logger,
): Promise<RunningApi> {
  const { store, blobs, archive, mirrors, crashPoint, registry } = stores
  const { dataDir, config, temporal } = context
  const connection = await Connection.connect({ ...temporal.access, address: temporal.address })
  const key = await ensureLocalKey(dataDir)
  const server = createApiServer({
    eventLog: store.eventLog,
    catalog: store.catalog,
    blobs,
    archive,
    mirrors,
    temporal: createTemporalGateway({ client: new Client({ connection, namespace: temporal.namespace }) }),
    system: createSystemInformation(context),
    clock: systemClock,
    config: config as ApiConfig,
    crashPoint,
    log,
    metrics: createMetrics({ agents: store.catalog.agents, registry }),
    localKey: key,
  })
  await server.listen({ host: context.host, port: context.port })
  return {
    key,
    keyFile: join(dataDir, localKeyFile),
    drain: () => server.drain(),
    async stop() {
      await server.close()
      await connection.close()
    },
  }
}

/** JSON lines. */
function serverLog({ logTo, dataDir, config, log }: PartContext): Logger {
  const level = String(config['log.level'])
  if (logTo === 'stderr') return createLogger({ level, destination: process.stderr })
  const file = createLogFile(dataDir, log)
  return createLogger({ level, destination: logTo === 'file' ? file : withWarningsOn(process.stderr, file) })
}

/** Stable over restarts, different for each data folder and worker process: the host's task queue is named after it. */
function hostName(dataDir: string, index: number): string {
  const digest = createHash('sha256').update(`${userInfo().uid} ${dataDir}`).digest('hex').slice(0, 8)
  return `${hostname()}-${digest}-${index}`
}

type WorkerConfig = Parameters<typeof startWorker>[0]['config']

function workerConfig(config: ResolvedConfig): WorkerConfig {
  const max = config['sandboxes.max']
  return {
    'sandboxes.max': max === 'cores' ? Math.max(2, availableParallelism()) : Number(max),
    'sandboxes.provider': config['sandboxes.provider'] as WorkerConfig['sandboxes.provider'],
    'sandboxes.image': String(config['sandboxes.image']),
    'sandboxes.engine': String(config['sandboxes.engine']),
    'sandboxes.pull': config['sandboxes.pull'] as WorkerConfig['sandboxes.pull'],
    'turn.capture_interval': Number(config['turn.capture_interval']),
    'sandbox.max_life': Number(config['sandbox.max_life']),
    'sandbox.end_margin': Number(config['sandbox.end_margin']),
    'turn.checkpoint_interval': Number(config['turn.checkpoint_interval']),
    'turn.capture_timeout': Number(config['turn.capture_timeout']),
    'turn.state_interval': Number(config['turn.state_interval']),
    'workspace.watch': config['workspace.watch'] as WorkerConfig['workspace.watch'],
    'workspace.ignored': config['workspace.ignored'] as WorkerConfig['workspace.ignored'],
    'workspace.env_files': config['workspace.env_files'] as WorkerConfig['workspace.env_files'],
    'sandbox.answer_timeout': Number(config['sandbox.answer_timeout']),
    'stop.grace': Number(config['stop.grace']),
    'stop.answer': Number(config['stop.answer']),
    'turn.heartbeat_timeout': Number(config['turn.heartbeat_timeout']),
    'agent.retention': Number(config['agent.retention']),
  }
}
