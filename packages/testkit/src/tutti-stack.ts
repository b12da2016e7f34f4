import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { cliMain } from './cli-main.ts'
import { markedPath, processesNaming, sandboxProcesses } from './stack-processes.ts'

/** What `bundleCli` made, where the tests' global setup says so. */
const mainPath = process.env['TUTTI_TEST_CLI'] ?? cliMain

/** How one run of the CLI ended. */
export interface CliRun {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** What `tutti dev -o json` and `tutti serve -o json` print when they are ready; a worker has no address. */
export interface ReadyLine {
  readonly address: string
  readonly temporal_address: string
  readonly temporal_ui: string
  readonly data_dir: string
  readonly pid: number
}

/** A role that is ready: `dev`, `api` or a worker. */
export interface RoleProcess {
  readonly ready: ReadyLine
  /** Resolves when it has ended, with its exit code; null for a signal. */
  readonly ended: Promise<number | null>
  /** SIGKILL of this process alone; resolves when it is dead. */
  kill(): Promise<void>
  /** SIGTERM, and waits for the drained end. */
  stop(): Promise<number | null>
}

/** A running CLI process. */
export interface CliProcess {
  readonly process: ChildProcess
  readonly done: Promise<CliRun>
}

/** The real product as separate processes on a data folder of its own; driven as a user drives it. */
export interface TuttiStack {
  readonly dataDir: string
  /** Of the role that serves the API. */
  ready(): ReadyLine
  /** Starts `tutti dev`; resolves when it is ready. Also after a crash. */
  start(env?: Readonly<Record<string, string>>): Promise<ReadyLine>
  /** SIGKILL, by pid, of `tutti dev` alone; resolves when it is dead. */
  kill(): Promise<void>
  /** SIGTERM, and waits for the drained end. */
  stop(): Promise<number | null>
  /** Resolves when `tutti dev` has ended by itself. */
  ended(): Promise<number | null>
  /** Starts `tutti serve` as a process of its own; resolves when it is ready. */
  serve(role: 'api' | 'worker', env?: Readonly<Record<string, string>>): Promise<RoleProcess>
  /** Living processes of its sandboxes, each as `PID WORDS`; empty when nothing is left. Linux only. */
  sandboxProcesses(): string[]
  /** Mounts and folders of its sandboxes, of living and forgotten ones, and all temporary files. */
  sandboxFiles(): string[]
  /** The living Temporal server of the data folder; undefined when there is none. */
  temporalPid(): number | undefined
  /** SIGKILL of every process that belongs to the data folder, all at once: roles, Temporal, sandboxes. */
  killEverything(): Promise<void>
  /** Runs the CLI on this data folder. */
  cli(
    args: readonly string[],
    options?: { readonly env?: Readonly<Record<string, string>>; readonly input?: string },
  ): CliProcess
  run(args: readonly string[]): Promise<CliRun>
  /** Runs the CLI with `-o json`. @throws Error with its stderr unless it exits with one of the codes (default 0). */
  json<T>(args: readonly string[], codes?: readonly number[]): Promise<T>
  /** Ends everything and removes the data folder. */
  remove(): Promise<void>
}

export interface TuttiStackOptions {
  /** The Temporal CLI, from the tests' global setup. */
  readonly temporalPath: string
  /** Settings of the stack, as environment variables. */
  readonly env?: Readonly<Record<string, string>>
  /** Of the Node that runs the roles. */
  readonly nodeArguments?: readonly string[]
}

export async function createTuttiStack(options: TuttiStackOptions): Promise<TuttiStack> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-stack-'))
  const dataDir = join(folder, 'data')
  const temporaries = join(folder, 'tmp')
  await mkdir(temporaries)
  const base = {
    ...process.env,
    TMPDIR: temporaries,
    PATH: markedPath(folder),
    TEMPORAL_CLI_PATH: options.temporalPath,
    TEMPORAL_ADDRESS: '',
    XDG_CONFIG_HOME: join(folder, 'config'),
    LOG_LEVEL: 'warn',
    NO_COLOR: '1',
    TUTTI_PORT: '0',
    ...options.env,
  }
  const roles = new Set<RoleProcess>()
  let server: RoleProcess | undefined
  let api: RoleProcess | undefined

  const launch = (args: readonly string[], env: Readonly<Record<string, string | undefined>>) =>
    spawn(process.execPath, [...(options.nodeArguments ?? []), mainPath, ...args, '--data-dir', dataDir], {
      env,
      cwd: folder,
      stdio: ['pipe', 'pipe', 'pipe'],
    })

  const startRole = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const child = launch([...args, '-o', 'json'], { ...base, ...env })
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
    const stderr: string[] = []
    child.stderr.on('data', (data: Buffer) => stderr.push(data.toString()))
    const line = new Promise<string>((resolve) =>
      createInterface({ input: child.stdout }).once('line', resolve),
    )
    const first = await Promise.race([line, ended])
    const name = `tutti ${args.join(' ')}`
    if (typeof first !== 'string') throw new Error(`${name} ended with ${first}: ${stderr.join('')}`)
    const end = async (signal: NodeJS.Signals) => {
      child.kill(signal)
      return ended
    }
    const role: RoleProcess = {
      ready: JSON.parse(first) as ReadyLine,
      ended,
      kill: async () => void (await end('SIGKILL')),
      stop: () => end('SIGTERM'),
    }
    roles.add(role)
    void ended.then((code) => {
      roles.delete(role)
      // What a server says before it dies is the first thing that whoever reads a failed test wants to know.
      if (code) process.stderr.write(`${name} ended with ${code}:\n${stderr.join('')}\n`)
    })
    return role
  }

  const stack: TuttiStack = {
    dataDir,
    ready() {
      if (!api) throw new Error('nothing that serves the API is running')
      return api.ready
    },
    async start(env = {}) {
      server = api = await startRole(['dev'], env)
      return server.ready
    },
    async kill() {
      await server?.kill()
      server = undefined
    },
    async stop() {
      const code = (await server?.stop()) ?? null
      server = undefined
      return code
    },
    ended: async () => (await server?.ended) ?? null,
    async serve(role, env = {}) {
      const started = await startRole(['serve', role], env)
      if (role === 'api') api = started
      return started
    },
    sandboxProcesses: () => sandboxProcesses(folder),
    sandboxFiles: () => [...sandboxFiles(dataDir), ...readdirSync(temporaries)],
    temporalPid: () => temporalPid(dataDir),
    async killEverything() {
      const ended = [...roles].map((role) => role.ended)
      const pids = [...[...roles].map((role) => role.ready.pid), ...processesNaming(folder)]
      const inside = sandboxProcesses(folder).map((line) => Number.parseInt(line, 10))
      for (const pid of [...pids, ...inside]) killNow(pid)
      await Promise.all(ended)
      server = undefined
    },
    cli(args, { env = {}, input } = {}) {
      const child = launch(args, { ...base, ...env })
      // One that ends without reading breaks the pipe; its exit says so.
      child.stdin.on('error', () => {})
      child.stdin.end(input ?? '')
      const out = { stdout: '', stderr: '' }
      child.stdout.on('data', (data: Buffer) => (out.stdout += data.toString()))
      child.stderr.on('data', (data: Buffer) => (out.stderr += data.toString()))
      return {
        process: child,
        done: new Promise((resolve) => child.on('close', (code) => resolve({ code, ...out }))),
      }
    },
    run: (args) => stack.cli(args).done,
    async json<T>(args: readonly string[], codes: readonly number[] = [0]) {
      const result = await stack.run([...args, '-o', 'json'])
      if (!codes.includes(result.code ?? -1)) {
        throw new Error(`tutti ${args.join(' ')} ended with ${result.code}: ${result.stderr}${result.stdout}`)
      }
      return JSON.parse(result.stdout) as T
    },
    async remove() {
      await Promise.all([...roles].map((role) => role.stop()))
      // A Temporal server outlives a killed stack, for the next start to adopt; here there is none.
      for (const pid of processesNaming(folder)) killNow(pid)
      unmountBelow(folder)
      await rm(folder, { recursive: true, force: true })
    },
  }
  return stack
}

function sandboxFiles(dataDir: string): string[] {
  const root = join(dataDir, 'sandboxes')
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((target) => target.startsWith(root))
  return [...mounts, ...(existsSync(root) ? readdirSync(root) : [])]
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}

/** The process that the record of the Temporal server names, as long as it is one on this folder. */
function temporalPid(dataDir: string): number | undefined {
  try {
    const { pid } = JSON.parse(readFileSync(join(dataDir, 'temporal', 'server.json'), 'utf8')) as ReadyLine
    return processesNaming(dataDir).find((living) => living === pid)
  } catch {
    return undefined
  }
}

/** A stack that was killed leaves the file systems of its sandboxes mounted, for the next start to find; here there is none. */
function unmountBelow(folder: string): void {
  if (process.platform !== 'linux') return
  for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
    const target = line.split(' ')[1]
    if (target?.startsWith(`${folder}/`)) execFileSync('umount', ['--lazy', target])
  }
}
