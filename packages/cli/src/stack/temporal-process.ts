import { execFile, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { TuttiError, searchAttributes, systemClock } from '@tutti/core'
import { allPids, isSameProcess, processStart } from '@tutti/processes'
import { freePort, requirePort } from './free-port.ts'
import { listensOn } from './listens-on.ts'
import { isTemporalHealthy } from './temporal-health.ts'

/** `server.json` beside the database: which process serves it, and on which ports. `pid` 0: it was stopped. */
export interface TemporalRecord {
  readonly pid: number
  readonly start: string
  readonly port: number
  readonly uiPort: number
}

export const temporalNamespace = 'default'
const host = '127.0.0.1'
export const temporalAddress = (record: TemporalRecord): string => `${host}:${record.port}`

const readyMs = 30_000
const stopMs = 5_000
/** Ports are looked for and then taken, so that two starts can be after the same one. */
const maxLaunches = 3

const recordFile = (folder: string): string => join(folder, 'server.json')
export const databaseFile = (folder: string): string => join(folder, 'temporal.db')
const logFile = (folder: string): string => join(folder, 'server.log')

/** The server that the folder's record names, if it is still that process; else one that serves the folder's database. */
export function findLiving(folder: string): TemporalRecord | undefined {
  const record = readRecord(folder)
  if (record && record.pid > 0 && isSameProcess(record.pid, record.start)) return record
  return findByDatabase(databaseFile(folder))
}

export function readRecord(folder: string): TemporalRecord | undefined {
  try {
    const record = JSON.parse(readFileSync(recordFile(folder), 'utf8')) as TemporalRecord
    return [record.pid, record.port, record.uiPort].every(Number.isInteger) ? record : undefined
  } catch {
    return undefined
  }
}

function writeRecord(folder: string, record: TemporalRecord): void {
  const own = `${recordFile(folder)}.${process.pid}`
  writeFileSync(own, `${JSON.stringify(record)}\n`, { mode: 0o600, flush: true })
  renameSync(own, recordFile(folder))
}

/** For the moment between the start of a server and its record: two servers must never share a database. */
function findByDatabase(database: string): TemporalRecord | undefined {
  for (const pid of allPids()) {
    try {
      const argv = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      if (argv[argv.indexOf('--db-filename') + 1] !== database || !argv.includes('start-dev')) continue
      const start = processStart(pid)
      if (start === undefined) continue
      const value = (flag: string) => Number(argv[argv.indexOf(flag) + 1])
      return { pid, start, port: value('--port'), uiPort: value('--ui-port') }
    } catch {
      // Ended while we looked, or not ours to look at.
    }
  }
  return undefined
}

export interface StartTemporal {
  /** Absolute path of the Temporal CLI. */
  readonly binary: string
  readonly folder: string
  /** Default: the ports of the last time, else 7233 and 8233; any free one when taken. One that was asked for is required. */
  readonly port?: WishedPort
  readonly uiPort?: WishedPort
  readonly retentionMs: number
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  /** Kills the server at once, as long as the start has not resolved. */
  readonly killed: AbortSignal
}

export interface WishedPort {
  readonly port: number
  /** The flag that asked for it; without one another port will do. */
  readonly flag?: string
}

/**
 * Starts the development server on the folder's database and resolves when it answers. Its own process group, so that a
 * Ctrl-C in the terminal does not end it before the workers have drained.
 *
 * The flags against the CLI's defaults: without the poll rate every hand-off waits for a
 * 50 ms tick; WAL is 2.5 times as fast; FULL keeps what was accepted over a power loss.
 *
 * @throws TuttiError `unavailable` with the end of its log when it does not come up; `failed_precondition` when a port that was
 * asked for is taken; `cancelled`.
 */
export async function startTemporalProcess(options: StartTemporal): Promise<TemporalRecord> {
  const last = readRecord(options.folder)
  const wished = options.port ?? { port: last?.port ?? 7233 }
  const wishedUi = options.uiPort ?? { port: last?.uiPort ?? 8233 }
  for (let attempt = 1; ; attempt += 1) {
    const [port, uiPort] = [await choosePort(wished), await choosePort(wishedUi)]
    try {
      return await launch(options, port, uiPort)
    } catch (error) {
      const isLost =
        // Its own inner services take free ports as well, and may take the one that its UI was given.
        /address already in use/.test(TuttiError.from(error).message) ||
        (await freePort(port, host)) !== port ||
        (await freePort(uiPort, host)) !== uiPort
      // Somebody else, most likely a start like this one, was faster with a port that was free a moment ago.
      if (options.signal.aborted || !isLost || attempt === maxLaunches) throw error
    }
  }
}

const choosePort = ({ port, flag }: WishedPort): Promise<number> =>
  flag === undefined
    ? freePort(port, host)
    : requirePort(port, host, `Choose another with ${flag}, or leave the flag out for any free one.`)

async function launch(options: StartTemporal, port: number, uiPort: number): Promise<TemporalRecord> {
  const { binary, folder, env, signal, killed } = options
  const log = openSync(logFile(folder), 'w', 0o600)
  const flags = Object.entries({
    '--ip': host,
    '--port': port,
    '--ui-port': uiPort,
    '--db-filename': databaseFile(folder),
    '--log-level': 'error',
    '--output': 'none',
    '--dynamic-config-value': 'history.transferProcessorMaxPollRPS=1000',
    '--sqlite-pragma': ['journal_mode=WAL', 'synchronous=FULL'],
    '--search-attribute': Object.values(searchAttributes).map((name) => `${name}=Keyword`),
  }).flatMap(([flag, values]) => [values].flat().flatMap((value) => [flag, String(value)]))
  const child = spawn(binary, ['server', 'start-dev', '--ui-disable-news-fetch', ...flags], {
    detached: true,
    stdio: ['ignore', log, log],
    env: bareEnv(env),
  })
  closeSync(log)
  const failure = new Promise<Error>((resolve) => {
    child.once('error', resolve)
    child.once('exit', (code, name) => resolve(new Error(`it ended with ${name ?? code}`)))
  })
  let failed: Error | undefined
  void failure.then((error) => (failed = error))
  if (child.pid === undefined) throw notUp(folder, await failure)
  const record: TemporalRecord = { pid: child.pid, start: processStart(child.pid) ?? '', port, uiPort }
  const kill = () => killGroup(record.pid, 'SIGKILL')
  killed.addEventListener('abort', kill, { once: true })
  child.unref()
  try {
    writeRecord(folder, record)
    const deadline = systemClock.monotonic() + readyMs
    // Another server may answer on the port that this one did not get, and it serves for a moment before it ends for its UI's.
    const isUp = async () =>
      (await isTemporalHealthy(temporalAddress(record), temporalNamespace)) &&
      [port, uiPort].every((taken) => listensOn(record.pid, taken) !== false) &&
      isSameProcess(record.pid, record.start)
    while (!(await isUp())) {
      if (failed) throw notUp(folder, failed)
      if (systemClock.monotonic() > deadline)
        throw notUp(folder, new Error(`it did not answer within ${readyMs / 1000} s`))
      await systemClock.sleep(30, signal)
    }
    await setRetention(binary, record, options, signal)
    return record
  } catch (error) {
    await endTemporalProcess(folder, record)
    throw error
  } finally {
    killed.removeEventListener('abort', kill)
  }
}

/** Without TEMPORAL_*: settings and keys of a cluster elsewhere are not for our own server. */
const bareEnv = (env: StartTemporal['env']) => ({
  PATH: env['PATH'],
  HOME: env['HOME'],
  TMPDIR: env['TMPDIR'],
})

/** The server's own default keeps ended workflows for a day only; operators look at older ones. */
async function setRetention(
  binary: string,
  record: TemporalRecord,
  { retentionMs, env }: Pick<StartTemporal, 'retentionMs' | 'env'>,
  signal: AbortSignal,
): Promise<void> {
  const hours = Math.max(24, Math.ceil(retentionMs / 3_600_000))
  const args = [
    'operator',
    'namespace',
    'update',
    '--address',
    temporalAddress(record),
    '-n',
    temporalNamespace,
  ]
  const options = { signal, timeout: 10_000, env: bareEnv(env) }
  await promisify(execFile)(binary, [...args, '--retention', `${hours}h`], options).catch(
    (error: unknown) => {
      throw signal.aborted
        ? TuttiError.from(error)
        : new TuttiError(
            'unavailable',
            'The retention of the Temporal server could not be set; see its log.',
            {},
            error,
          )
    },
  )
}

function notUp(folder: string, cause: Error): TuttiError {
  let tail = ''
  try {
    tail = readFileSync(logFile(folder), 'utf8').trim().split('\n').slice(-5).join('\n').slice(-1000)
  } catch {
    // There is no log yet.
  }
  return new TuttiError(
    'unavailable',
    `The Temporal server did not come up: ${cause.message}. Its log is ${logFile(folder)}.${tail === '' ? '' : `\n${tail}`}`,
    { log: logFile(folder) },
    cause,
  )
}

/** SIGTERM to the group, SIGKILL when it takes too long; resolves when the process is gone. */
export async function endTemporalProcess(folder: string, record: TemporalRecord): Promise<void> {
  const never = new AbortController().signal
  const isThere = () => isSameProcess(record.pid, record.start)
  for (const name of ['SIGTERM', 'SIGKILL'] as const) {
    if (isThere()) killGroup(record.pid, name)
    const deadline = systemClock.monotonic() + stopMs
    while (isThere() && systemClock.monotonic() < deadline) await systemClock.sleep(20, never)
  }
  writeRecord(folder, { ...record, pid: 0, start: '' })
}

/** The group is the server's own; a recorded process that leads no group is signalled alone. */
export function killGroup(pid: number, name: NodeJS.Signals): void {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, name)
      return
    } catch {
      // No such group: try the process, which may be gone as well.
    }
  }
}
