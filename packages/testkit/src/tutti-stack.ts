import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const mainPath = fileURLToPath(new URL('../../cli/src/main.ts', import.meta.url))

/** How one run of the CLI ended. */
export interface CliRun {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** What `tutti dev -o json` prints when it is ready. */
export interface ReadyLine {
  readonly address: string
  readonly temporal_address: string
  readonly temporal_ui: string
  readonly data_dir: string
  readonly pid: number
}

/** A running CLI process. */
export interface CliProcess {
  readonly process: ChildProcess
  readonly done: Promise<CliRun>
}

/** The real product as separate processes on a data folder of its own; driven as a user drives it. */
export interface TuttiStack {
  readonly dataDir: string
  ready(): ReadyLine
  /** Starts `tutti dev`; resolves when it is ready. Also after a crash. */
  start(env?: Readonly<Record<string, string>>): Promise<ReadyLine>
  /** SIGKILL, by pid, of `tutti dev` alone; resolves when it is dead. */
  kill(): Promise<void>
  /** SIGTERM, and waits for the drained end. */
  stop(): Promise<number | null>
  /** Resolves when `tutti dev` has ended by itself. */
  ended(): Promise<number | null>
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
}

export async function createTuttiStack(options: TuttiStackOptions): Promise<TuttiStack> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-stack-'))
  const dataDir = join(folder, 'data')
  const base = {
    ...process.env,
    TEMPORAL_CLI_PATH: options.temporalPath,
    TEMPORAL_ADDRESS: '',
    XDG_CONFIG_HOME: join(folder, 'config'),
    LOG_LEVEL: 'warn',
    NO_COLOR: '1',
    TUTTI_PORT: '0',
    ...options.env,
  }
  let server:
    | { readonly process: ChildProcess; readonly ended: Promise<number | null>; readonly ready: ReadyLine }
    | undefined

  const launch = (args: readonly string[], env: Readonly<Record<string, string | undefined>>) =>
    spawn(process.execPath, [mainPath, ...args, '--data-dir', dataDir], {
      env,
      cwd: folder,
      stdio: ['pipe', 'pipe', 'pipe'],
    })

  const stack: TuttiStack = {
    dataDir,
    ready() {
      if (!server) throw new Error('tutti dev is not running')
      return server.ready
    },
    async start(env = {}) {
      const child = launch(['dev', '-o', 'json'], { ...base, ...env })
      const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
      const stderr: string[] = []
      child.stderr.on('data', (data: Buffer) => stderr.push(data.toString()))
      const line = new Promise<string>((resolve) =>
        createInterface({ input: child.stdout }).once('line', resolve),
      )
      const first = await Promise.race([line, ended])
      if (typeof first !== 'string') throw new Error(`tutti dev ended with ${first}: ${stderr.join('')}`)
      // What a server says before it dies is the first thing that whoever reads a failed test wants to know.
      void ended.then(
        (code) => code && process.stderr.write(`tutti dev ended with ${code}:\n${stderr.join('')}\n`),
      )
      server = { process: child, ended, ready: JSON.parse(first) as ReadyLine }
      return server.ready
    },
    async kill() {
      server?.process.kill('SIGKILL')
      await server?.ended
      server = undefined
    },
    async stop() {
      server?.process.kill('SIGTERM')
      const code = (await server?.ended) ?? null
      server = undefined
      return code
    },
    ended: async () => (await server?.ended) ?? null,
    cli(args, { env = {}, input } = {}) {
      const child = launch(args, { ...base, ...env })
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
      await stack.stop()
      unmountBelow(folder)
      await rm(folder, { recursive: true, force: true })
    },
  }
  return stack
}

/** A stack that was killed leaves the file systems of its sandboxes mounted, for the next start to find; here there is none. */
function unmountBelow(folder: string): void {
  if (process.platform !== 'linux') return
  for (const line of readFileSync('/proc/mounts', 'utf8').split('\n')) {
    const target = line.split(' ')[1]
    if (target?.startsWith(`${folder}/`)) execFileSync('umount', ['--lazy', target])
  }
}
