import { TuttiError } from '@tutti/core'
import { isSameProcess } from '@tutti/processes'
import { describeTemporal, findTemporalServer } from '@tutti/temporal-binary'
import type { TemporalAccess } from '@tutti/worker'
import type { Locks } from './locks.ts'
import { isTemporalHealthy, temporalProblem } from './temporal-health.ts'
import {
  endTemporalProcess,
  findLiving,
  killGroup,
  startTemporalProcess,
  temporalAddress,
  temporalNamespace,
  type StartTemporal,
  type TemporalRecord,
} from './temporal-process.ts'

export interface TemporalServer {
  /** `host:port`. */
  readonly address: string
  readonly namespace: string
  /** TLS and keys of a cluster elsewhere; empty for our own server. */
  readonly access: TemporalAccess
  /** Absent for a cluster that is not ours. */
  readonly uiAddress?: string
  /** One line: what was taken and from where. */
  readonly origin: string
  /** Ends our server. Does nothing to a cluster that is not ours. */
  stop(): Promise<void>
  /** Leaves the server running for others and only stops watching it. */
  release(): void
  /** Ends our server at once. */
  kill(): void
  /** Rejects when our server ended and could not be started again where it was. */
  readonly failed: Promise<never>
}

export interface EnsureTemporal extends Pick<StartTemporal, 'port' | 'uiPort' | 'killed'> {
  readonly folder: string
  readonly locks: Locks
  readonly retentionMs: number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: (line: string) => void
  readonly signal: AbortSignal
}

type WishedPorts = Pick<StartTemporal, 'port' | 'uiPort'>

const watchMs = 250
/** A cluster elsewhere may be far away. */
const foreignMs = 5000

/**
 * The Temporal server of a data folder: the cluster that TEMPORAL_ADDRESS names, else our own. One that an earlier, killed
 * process left running is adopted when it answers on the ports that are asked for, and ended else. Ours is watched: when it dies it is started
 * again on the same port and database.
 *
 * @throws TuttiError `failed_precondition` when there is no Temporal program to be had; `unavailable` when it does not start;
 * `failed_precondition` when a port that was asked for is taken.
 */
export async function ensureTemporal(options: EnsureTemporal): Promise<TemporalServer> {
  const { env, log, signal } = options
  const found = await findTemporalServer({ env: { ...env }, log, signal })
  if (found.kind === 'missing') throw new TuttiError('failed_precondition', found.message)
  if (found.kind === 'address') {
    // Only here: our own server's start need not wait for the library.
    const { readTemporalAccess } = await import('./read-temporal-access.ts')
    const { namespace = temporalNamespace, access } = readTemporalAccess(env)
    const cluster = { address: found.address, namespace, access }
    const problem = await temporalProblem(cluster, foreignMs)
    if (problem === undefined) return foreignServer(cluster, describeTemporal(found))
    const how = access.tls ? 'with TLS' : 'without TLS'
    throw new TuttiError(
      'unavailable',
      `The Temporal cluster at ${found.address} (TEMPORAL_ADDRESS, ${how}) does not answer for the namespace ${namespace}: ${problem}. Start it, correct TEMPORAL_NAMESPACE, TEMPORAL_API_KEY or TEMPORAL_TLS (true or false) and its certificates, or unset TEMPORAL_ADDRESS to let Tutti start its own server.`,
      { address: found.address, namespace },
    )
  }
  const ended = new AbortController()
  const startOrAdopt = (wished: WishedPorts) =>
    options.locks.exclusively(
      () => adoptOrStart(options, found.path, wished, AbortSignal.any([signal, ended.signal])),
      AbortSignal.any([signal, ended.signal]),
    )
  let record = await startOrAdopt(options)
  const address = temporalAddress(record)

  let restarting: Promise<void> | undefined
  const { promise: failed, reject } = Promise.withResolvers<never>()
  failed.catch(() => {})
  const restart = async () => {
    log('The Temporal server ended; starting it again.')
    try {
      const next = await startOrAdopt({ port: { port: record.port }, uiPort: { port: record.uiPort } })
      record = next
      if (temporalAddress(next) !== address) {
        reject(
          new TuttiError(
            'unavailable',
            `The Temporal server could not return to ${address}: the port was taken.`,
          ),
        )
      }
    } catch (error) {
      if (!ended.signal.aborted) reject(error)
    } finally {
      restarting = undefined
    }
  }
  const watch = setInterval(() => {
    if (restarting || isSameProcess(record.pid, record.start)) return
    restarting = restart()
  }, watchMs)
  watch.unref()

  const release = () => {
    clearInterval(watch)
    ended.abort()
  }
  return {
    address,
    namespace: temporalNamespace,
    access: {},
    uiAddress: `http://127.0.0.1:${record.uiPort}`,
    origin: describeTemporal(found),
    failed,
    release,
    async stop() {
      release()
      await restarting
      await endTemporalProcess(options.folder, record)
    },
    kill() {
      release()
      if (isSameProcess(record.pid, record.start)) killGroup(record.pid, 'SIGKILL')
    },
  }
}

async function adoptOrStart(
  options: EnsureTemporal,
  binary: string,
  wished: WishedPorts,
  signal: AbortSignal,
): Promise<TemporalRecord> {
  const { folder, env, retentionMs, log, killed } = options
  const living = findLiving(folder)
  if (living && !isOn(living, wished)) {
    log(`Ending a Temporal server on other ports (pid ${living.pid}).`)
    await endTemporalProcess(folder, living)
  } else if (living) {
    // One that another process has just started gets the time to come up.
    for (let tries = 0; tries < 3; tries += 1) {
      if (await isTemporalHealthy(temporalAddress(living), temporalNamespace)) return living
    }
    log(`Ending a Temporal server that does not answer (pid ${living.pid}).`)
    await endTemporalProcess(folder, living)
  }
  return startTemporalProcess({
    ...(wished.port === undefined ? {} : { port: wished.port }),
    ...(wished.uiPort === undefined ? {} : { uiPort: wished.uiPort }),
    binary,
    folder,
    env,
    retentionMs,
    signal,
    killed,
  })
}

/** Whether it has the ports that were asked for by a flag. */
const isOn = (living: TemporalRecord, { port, uiPort }: WishedPorts): boolean =>
  (port?.flag === undefined || port.port === living.port) &&
  (uiPort?.flag === undefined || uiPort.port === living.uiPort)

function foreignServer(
  cluster: Pick<TemporalServer, 'address' | 'namespace' | 'access'>,
  origin: string,
): TemporalServer {
  return {
    ...cluster,
    origin,
    failed: new Promise<never>(() => {}),
    stop: async () => {},
    release: () => {},
    kill: () => {},
  }
}
