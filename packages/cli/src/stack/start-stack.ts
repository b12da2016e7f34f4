import { TuttiError } from '@tutti/core'
import type { LoadedConfig } from '../config/load-config.ts'
import { openDataFolder, removeEndpoint, writeEndpoint } from './data-folder.ts'
import { freePort, requirePort } from './free-port.ts'
import { createLocks, isRefused, type HeldLock, type LockHolder, type LockKind, type Locks } from './locks.ts'
import type { OpenStores, PartContext, RunningApi, RunningPart, StackParts } from './parts.ts'
import type { WishedPort } from './temporal-process.ts'
import { ensureTemporal, type TemporalServer } from './temporal-server.ts'
import { unwind, type UndoStep } from './unwind.ts'

export interface StartStack extends Pick<PartContext, 'logTo' | 'log'> {
  /** `dev`: everything in this process. */
  readonly kind: LockKind
  readonly config: LoadedConfig
  readonly env: Readonly<Record<string, string | undefined>>
  readonly parts: StackParts
  readonly temporalPort?: WishedPort
  readonly temporalUiPort?: WishedPort
  /** Called when the lock is ours and starting begins. */
  readonly onStart?: () => void
  /** Ends the start in order. */
  readonly signal: AbortSignal
  /** Ends at once, whenever, everything that would outlive this process; with the abort it has happened. */
  readonly killed: AbortSignal
}

export interface Stack {
  /** `http://127.0.0.1:PORT` and its key; absent for a worker. */
  readonly api?: { readonly address: string; readonly key: string }
  readonly dataDir: string
  readonly role: string
  readonly temporal: Pick<TemporalServer, 'address' | 'uiAddress' | 'namespace' | 'origin'>
  /** Drains and ends all of it; idempotent. */
  stop(): Promise<void>
  /** Rejects when a part failed for good. */
  readonly failed: Promise<never>
}

const host = '127.0.0.1'

/**
 * Starts a role on a data folder, or says who has it: lock → Temporal → stores → worker → api → endpoint.json. Whatever was
 * started is ended again when a later step fails.
 *
 * @throws TuttiError `failed_precondition` (data folder of a newer version, port taken, no Temporal), `unavailable`, `cancelled`.
 */
export async function startStack(options: StartStack): Promise<Stack | { readonly holder: LockHolder }> {
  const { config, env, parts, kind, signal, killed, log } = options
  const folder = openDataFolder(String(config.values['data.dir']))
  const locks = createLocks(folder.path)
  const lock = locks.acquire(kind)
  if (isRefused(lock)) return lock
  options.onStart?.()

  const undo: UndoStep[] = []
  const running: RunningPart[] = []
  let temporal: TemporalServer | undefined
  let stopping: Promise<void> | undefined
  const stop = () => (stopping ??= unwind(undo, log))
  const kill = () => {
    for (const part of running) part.kill?.()
    if (kind === 'dev') temporal?.kill()
    removeEndpoint(folder.path)
  }
  killed.addEventListener('abort', kill, { once: true })
  try {
    undo.push({ what: 'Temporal', end: () => endShared(locks, lock, temporal) })
    temporal = await ensureTemporal({
      folder: folder.temporalDir,
      retentionMs: Number(config.values['agent.retention']),
      ...(options.temporalPort === undefined ? {} : { port: options.temporalPort }),
      ...(options.temporalUiPort === undefined ? {} : { uiPort: options.temporalUiPort }),
      locks,
      env,
      log,
      signal,
      killed,
    })
    const stores = await parts.openStores(folder.path, config.values)
    undo.push({ what: 'the stores', end: () => stores.close() })
    const context: PartContext = {
      dataDir: folder.path,
      logTo: options.logTo,
      log,
      config: config.values,
      env,
      temporal: {
        address: temporal.address,
        namespace: temporal.namespace,
        access: temporal.access,
        origin: temporal.origin,
        ...(temporal.uiAddress === undefined ? {} : { uiAddress: temporal.uiAddress }),
      },
    }
    const api = kind === 'worker' ? undefined : await startApi(options, stores, context)
    if (api) {
      running.push(api.part)
      undo.push({ what: 'the API', end: () => api.part.stop() })
    }
    signal.throwIfAborted()
    if (kind !== 'api') {
      const worker = await parts.startWorker(stores, {
        ...context,
        index: lock.index,
        mode: kind === 'dev' ? 'embedded' : 'serve',
      })
      running.push(worker)
      // The worker drains first, while its clients can still read what it does.
      undo.push({ what: 'the worker', end: () => worker.stop() })
    }
    signal.throwIfAborted()
    if (api) {
      undo.push({
        what: 'the endpoint',
        async end() {
          api.part.drain()
          removeEndpoint(folder.path)
        },
      })
      writeEndpoint(folder.path, {
        address: api.address,
        pid: process.pid,
        startedAt: new Date().toISOString(),
        keyFile: api.part.keyFile,
      })
    }
    const server = temporal
    const failed = Promise.race([server.failed, ...running.flatMap((part) => part.failed ?? [])])
    failed.catch(() => {})
    return {
      ...(api ? { api: { address: api.address, key: api.part.key } } : {}),
      dataDir: folder.path,
      role: lock.role,
      temporal: context.temporal,
      stop,
      failed,
    }
  } catch (error) {
    await stop()
    throw signal.aborted ? new TuttiError('cancelled', 'Starting was cancelled.', {}, error) : error
  }
}

async function startApi(
  { config, kind, parts }: StartStack,
  stores: OpenStores,
  context: PartContext,
): Promise<{ readonly address: string; readonly part: RunningApi }> {
  const wished = Number(config.values['server.port'])
  const asked = config.origins['server.port'].origin !== 'default'
  const start = async (port: number) => {
    const mode = kind === 'dev' ? 'embedded' : 'serve'
    const part = await parts.startApi(stores, { ...context, host, port, mode })
    return { address: `http://${host}:${port}`, part }
  }
  if (asked) return start(await requirePort(wished, host, 'Choose another, or 0 for any free one.'))
  const port = await freePort(wished, host)
  return start(port).catch(async (error: unknown) => {
    // Nobody asked for this one, and somebody was faster: any other will do.
    if (TuttiError.from(error).detail['port'] !== port) throw error
    return start(await freePort(0, host))
  })
}

/** The Temporal server belongs to the data folder: the last process that leaves ends it, and nobody adopts one that ends. */
async function endShared(locks: Locks, lock: HeldLock, temporal: TemporalServer | undefined): Promise<void> {
  await locks.exclusively(async () => {
    if (lock.releaseAndCheckLast()) await temporal?.stop()
    else temporal?.release()
  }, new AbortController().signal)
}
