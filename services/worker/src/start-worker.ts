import { join } from 'node:path'
import { createCommandAdapter } from '@tutti/agent'
import { createEmbeddedAdapter } from '@tutti/agent-embedded'
import {
  createActivities,
  createSessions,
  endSession,
  type ActivityDeps,
  type ActivityLog,
} from '@tutti/activities'
import { buildAgentServer } from '@tutti/agent-server'
import type { BlobStore } from '@tutti/blob-store'
import {
  agentWorkflowId,
  hostTaskQueue,
  sharedTaskQueue,
  type AgentId,
  type Clock,
  type CrashPoint,
} from '@tutti/core'
import type { Forge } from '@tutti/forge'
import type { Mirrors } from '@tutti/git'
import type { Catalog, EventLog } from '@tutti/store'
import { findStrategy } from '@tutti/synthesis'
import { releaseSandboxSignal, turnWaitingSignal } from '@tutti/workflows'
import { Client, Connection } from '@temporalio/client'
import { NativeConnection, Worker } from '@temporalio/worker'
import type { Registry } from 'prom-client'
import { createAgentServers } from './agent-servers.ts'
import { bundleWorkflows } from './bundle-workflows.ts'
import { openSandboxes } from './open-sandboxes.ts'
import { startReaper } from './reaper.ts'
import { checkSearchAttributes } from './search-attributes.ts'
import { logActivities } from './log-activities.ts'
import { observeActivities } from './observe-activities.ts'
import { serveMetrics } from './serve-metrics.ts'
import type { TemporalAccess } from './temporal-access.ts'
import { logTemporal } from './temporal-log.ts'
import { traceActivities } from './trace-activities.ts'
import { createWorkerMetrics } from './worker-metrics.ts'
import type { WorkerConfig } from './worker-config.ts'

export interface WorkerOptions {
  readonly temporal: { readonly address: string; readonly namespace: string; readonly access: TemporalAccess }
  readonly stores: {
    readonly eventLog: EventLog
    readonly catalog: Catalog
    readonly blobs: BlobStore
    readonly mirrors: Mirrors
    readonly forge: Forge
  }
  /** Stable over restarts: the host's own task queue is named after it. */
  readonly host: string
  /** Tutti's data folder, which no sandbox is given. */
  readonly dataDir: string
  /** Sandboxes live below this folder. */
  readonly sandboxRoot: string
  /** Bundles are kept here. */
  readonly cacheDir: string
  readonly config: WorkerConfig
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly crashPoint: CrashPoint
  readonly log: ActivityLog
  /** Takes the worker's metrics. */
  readonly registry: Registry
  /** Serves the registry on loopback too; 0 for nowhere. */
  readonly metricsPort: number
  /** A trace exporter is set: spans are made. */
  readonly tracing: boolean
}

export interface RunningWorker {
  /** Hands running turns over and ends every sandbox; resolves when nothing runs any more. */
  stop(): Promise<void>
  /** Ends every sandbox at once, without waiting for anything. */
  kill(): void
  /** Rejects when the worker fails by itself. */
  readonly failed: Promise<never>
}

/** Agents waiting for a slot hold an activity each, so there must be more of these than agents that can wait. */
const sharedActivities = 400

/**
 * The composition root of the worker: picks the adapters and runs two Temporal workers, one for the shared queue (workflows and
 * activities that any host may run) and one for this host's own queue (its sandboxes).
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { temporal, host, config, clock } = options
  const sessions = createSessions()
  const monotonic = () => clock.monotonic()
  const metrics = createWorkerMetrics({
    registry: options.registry,
    sessions,
    leases: options.stores.catalog.leases,
    host,
    monotonic,
  })
  const { log, observe } = logActivities(options.log, monotonic)
  const sandboxes = await openSandboxes(options)
  const stores = { ...options.stores, eventLog: metrics.measured(options.stores.eventLog) }
  const drain = new AbortController()
  // First, so that a port that is taken leaves nothing behind.
  const page =
    options.metricsPort > 0
      ? await serveMetrics(options.registry, options.metricsPort, () => !drain.signal.aborted)
      : undefined
  logTemporal(log)
  const [native, connection, workflowBundlePath] = await Promise.all([
    NativeConnection.connect({ ...temporal.access, address: temporal.address }),
    Connection.connect({ ...temporal.access, address: temporal.address }),
    bundleWorkflows(options.cacheDir),
  ])
  await checkSearchAttributes(connection, temporal.namespace)
  const client = new Client({ connection, namespace: temporal.namespace })
  const serverPath = await buildAgentServer(join(options.cacheDir, 'agent-server'))
  const deps: ActivityDeps = {
    ...stores,
    sandboxes,
    agentServers: createAgentServers({
      serverPath,
      stopGraceMs: config['stop.grace'],
      ignored: { files: config['workspace.ignored'], envFiles: config['workspace.env_files'] === 'yes' },
      onDenied: metrics.egressDenied,
      now: () => clock.now(),
    }),
    adapters: new Map(
      [createCommandAdapter({ clock }), createEmbeddedAdapter({ clock, env: options.env })].map((adapter) => [
        adapter.kind,
        adapter,
      ]),
    ),
    strategyOf: findStrategy,
    clock,
    crashPoint: options.crashPoint,
    log,
    host,
    hostQueue: hostTaskQueue(host),
    maxSandboxes: config['sandboxes.max'],
    watchWorkspace: config['workspace.watch'] === 'yes',
    captureIntervalMs: config['turn.capture_interval'],
    checkpointIntervalMs: config['turn.checkpoint_interval'],
    captureTimeoutMs: config['turn.capture_timeout'],
    stopGraceMs: config['stop.grace'],
    stopAnswerMs: config['stop.answer'],
    answerTimeoutMs: config['sandbox.answer_timeout'],
    stateIntervalMs: config['turn.state_interval'],
    env: options.env,
    draining: drain.signal,
    askToRelease: (bcId) =>
      client.workflow.getHandle(agentWorkflowId(bcId as AgentId)).signal(releaseSandboxSignal),
    tellWaiting: (bcId, waiting) =>
      client.workflow.getHandle(agentWorkflowId(bcId as AgentId)).signal(turnWaitingSignal, waiting),
  }
  const reaper = await startReaper({
    sandboxes,
    sessions,
    endSession: (session) => endSession(deps, sessions, session),
    catalog: stores.catalog,
    mirrors: stores.mirrors,
    blobs: stores.blobs,
    retentionMs: config['agent.retention'],
    cacheDir: options.cacheDir,
    bundles: [workflowBundlePath, serverPath],
    host,
    clock,
    log,
  })
  const activities = { ...createActivities(deps, sessions) }
  const activity = [
    observeActivities([
      ...(options.tracing ? [traceActivities({ eventLog: stores.eventLog, clock })] : []),
      observe,
      metrics.observe,
    ]),
  ]
  const common = {
    connection: native,
    namespace: temporal.namespace,
    activities,
    // A cancel is heard with the next heartbeat, so heartbeats must not be held back for long.
    maxHeartbeatThrottleInterval: '1s',
    defaultHeartbeatThrottleInterval: '1s',
    shutdownGraceTime: '10s',
    shutdownForceTime: '30s',
    interceptors: { activity },
  } as const
  const shared = await Worker.create({
    ...common,
    taskQueue: sharedTaskQueue,
    workflowBundle: { codePath: workflowBundlePath },
    maxConcurrentActivityTaskExecutions: sharedActivities,
    maxCachedWorkflows: 500,
    // Tasks for a worker that is gone wait this long for it before another gets them.
    stickyQueueScheduleToStartTimeout: Math.min(10_000, config['turn.heartbeat_timeout']),
  })
  const local = await Worker.create({
    ...common,
    taskQueue: deps.hostQueue,
    // More than admitted agents, so that schedule-to-start measures liveness only (design §5).
    maxConcurrentActivityTaskExecutions: config['sandboxes.max'] * 2 + 20,
  })
  const running = [shared.run(), local.run()]
  const failed = new Promise<never>((_resolve, reject) => {
    for (const run of running) run.catch(reject)
  })
  failed.catch((error: unknown) => log.warn({ err: error }, 'the worker failed'))

  return {
    failed,
    async stop() {
      drain.abort()
      for (const worker of [shared, local]) if (worker.getState() === 'RUNNING') worker.shutdown()
      await Promise.allSettled(running)
      await reaper.stop()
      await Promise.allSettled(sessions.all().map((session) => endSession(deps, sessions, session)))
      await page?.close()
      await native.close()
      await connection.close()
    },
    kill() {
      for (const session of sessions.all()) session.controller.abort()
      sandboxes.kill()
    },
  }
}
