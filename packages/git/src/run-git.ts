import { TuttiError, throwIfCancelled } from '@tutti/core'
import { execa } from 'execa'
import { simpleGit, type SimpleGit } from 'simple-git'
import { hardenedConfig, hardenedEnvironment, type Protocol } from './hardened.ts'
import { redact } from './redact.ts'
import { lacking, shortageIn } from './shortage.ts'

export interface GitRun {
  readonly gitDir?: string
  readonly signal: AbortSignal
  /** The one transport that this command may use. */
  readonly protocol?: Protocol
  readonly input?: Uint8Array | AsyncIterable<Uint8Array>
  readonly env?: Readonly<Record<string, string>>
  /** More configuration; constants of ours or values that were checked. */
  readonly config?: readonly string[]
  /** Output above this is an error, or is cut when `cut` is set. Default 64 MiB: lists of paths of big repositories fit. */
  readonly maxBytes?: number
  readonly cut?: boolean
  /** Default 2 minutes: local work; transfers say so themselves. */
  readonly timeoutMs?: number
}

export interface GitOutput {
  readonly exitCode: number
  readonly stdout: Buffer
  readonly stderr: string
  readonly cut: boolean
}

/** What ran, for the log: never the environment, and no operand that could hold a secret. */
export interface GitLogEntry {
  readonly command: string
  readonly exitCode: number
  readonly ms: number
}

export interface GitRunner {
  /**
   * Raw bytes in and out. Resolves for any exit code that is git's own verdict; an abort kills git with everything that it started.
   * @throws TuttiError `unavailable` when git could not run, or the host lacked what it needs: a full disk says nothing of a repository.
   */
  run(args: readonly string[], options: GitRun): Promise<GitOutput>
  /**
   * The output while it is written, however long it is; git waits for the reader. Ends only after exit code 0, and throws `internal`
   * for another one. git starts with the first read, and is killed when the reading stops early.
   */
  stream(args: readonly string[], options: Omit<GitRun, 'maxBytes' | 'cut'>): AsyncGenerator<Uint8Array>
  /** Like `run`, and throws `internal` unless the exit code is 0. */
  bytes(args: readonly string[], options: GitRun): Promise<Buffer>
  /** For short commands of text on one mirror. A failure with nothing on stderr (`--quiet`) is an empty text. */
  text(gitDir: string, args: readonly string[], signal: AbortSignal): Promise<string>
}

export interface GitRunnerOptions {
  readonly gitPath: string
  /** An empty folder of ours. */
  readonly home: string
  readonly log?: (entry: GitLogEntry) => void
}

/** How a process of execa ended. */
interface Ended {
  readonly exitCode?: number | undefined
  readonly timedOut: boolean
  readonly isMaxBuffer: boolean
  readonly code?: string | undefined
}

const localTimeoutMs = 120_000
const defaultMaxBytes = 64 << 20

/** The one place where git is started (design §8): `execa` for bytes and transfers, simple-git for short commands of text. */
export function createGitRunner({ gitPath, home, log }: GitRunnerOptions): GitRunner {
  const configArguments = (more: readonly string[] = []) =>
    [...hardenedConfig, ...more].flatMap((pair) => ['-c', pair])

  const optionsOf = (options: GitRun) =>
    ({
      cwd: options.gitDir ?? home,
      env: { ...hardenedEnvironment(home, options.gitDir, options.protocol), ...options.env },
      extendEnv: false,
      reject: false,
      encoding: 'buffer',
      stripFinalNewline: false,
      maxBuffer: { stdout: options.maxBytes ?? defaultMaxBytes, stderr: 1 << 20 },
      cancelSignal: options.signal,
      timeout: options.timeoutMs ?? localTimeoutMs,
      killDescendants: true,
      // First the signal on which git removes its lock files.
      killSignal: 'SIGTERM',
      forceKillAfterDelay: 2000,
      stdin: options.input ?? 'ignore',
    }) as const

  /** Logs what ran. @throws TuttiError unless it ran to an end of its own. */
  const judge = (name: string, started: number, options: GitRun, result: Ended): void => {
    log?.({ command: name, exitCode: result.exitCode ?? -1, ms: performance.now() - started })
    throwIfCancelled(options.signal)
    if (result.timedOut) {
      throw new TuttiError('deadline_exceeded', `git ${name} took too long and was stopped.`, {
        command: name,
      })
    }
    if (result.isMaxBuffer && !options.cut) {
      const maxBytes = options.maxBytes ?? defaultMaxBytes
      throw new TuttiError('resource_exhausted', `git ${name} wrote more than ${maxBytes} bytes.`, {
        command: name,
      })
    }
    if (result.exitCode === undefined && !result.isMaxBuffer) {
      const hint = result.code === 'ENOENT' ? ' Install git 2.38 or newer.' : ''
      throw new TuttiError('unavailable', `git ${name} could not run.${hint}`, { command: name }, result)
    }
  }

  const run = async (args: readonly string[], options: GitRun): Promise<GitOutput> => {
    throwIfCancelled(options.signal)
    const started = performance.now()
    const result = await execa(gitPath, [...configArguments(options.config), ...args], optionsOf(options))
    judge(nameOf(args), started, options, result)
    const stderr = redact(Buffer.from(result.stderr).toString('utf8'))
    if (result.exitCode !== 0) throwIfShort(nameOf(args), stderr)
    return {
      exitCode: result.exitCode ?? 0,
      stdout: Buffer.from(result.stdout),
      stderr,
      cut: result.isMaxBuffer,
    }
  }

  async function* stream(args: readonly string[], options: GitRun): AsyncGenerator<Uint8Array> {
    throwIfCancelled(options.signal)
    const started = performance.now()
    const running = execa(gitPath, [...configArguments(options.config), ...args], {
      ...optionsOf(options),
      buffer: { stdout: false, stderr: true },
    })
    let isWhole = false
    try {
      yield* running.stdout
      isWhole = true
    } catch {
      // How git ended says more than how its output did.
    } finally {
      if (!isWhole) running.kill()
      await running
    }
    const result = await running
    judge(nameOf(args), started, options, result)
    if (result.exitCode !== 0 || !isWhole)
      throw failed(nameOf(args), redact(Buffer.from(result.stderr).toString('utf8')))
  }

  const simple = (gitDir: string, signal: AbortSignal): SimpleGit => {
    const env = hardenedEnvironment(home, gitDir)
    return simpleGit({
      baseDir: gitDir,
      binary: gitPath,
      config: [...hardenedConfig],
      abort: signal,
      timeout: { block: localTimeoutMs },
      allowEnvironment: Object.keys(env),
      // For the constants above alone: what comes from outside is an operand behind `--` or `--end-of-options`, or was checked.
      unsafe: {
        allowUnsafeAlias: true,
        allowUnsafeAskPass: true,
        allowUnsafeConfigPaths: true,
        allowUnsafeCredentialHelper: true,
        allowUnsafeCustomBinary: true,
        allowUnsafeFsMonitor: true,
        allowUnsafeHooksPath: true,
        allowUnsafeProtocolOverride: true,
        allowUnsafeSshCommand: true,
      },
    }).env(env)
  }

  return {
    run,
    stream,
    async bytes(args, options) {
      const output = await run(args, options)
      if (output.exitCode !== 0) throw failed(args[0] ?? '', output.stderr)
      return output.stdout
    },
    async text(gitDir, args, signal) {
      throwIfCancelled(signal)
      const started = performance.now()
      const answer = await simple(gitDir, signal)
        .raw([...args])
        .catch((cause: unknown) => {
          throwIfCancelled(signal)
          throw failed(args[0] ?? '', redact(cause instanceof Error ? cause.message : String(cause)))
        })
      log?.({ command: args[0] ?? '', exitCode: 0, ms: performance.now() - started })
      return answer.trim()
    },
  }
}

const nameOf = (args: readonly string[]): string => args.find((argument) => !argument.startsWith('-')) ?? ''

function throwIfShort(command: string, stderr: string): void {
  const shortage = shortageIn(stderr)
  if (shortage !== undefined) throw lacking(`git ${command}`, shortage, new Error(stderr))
}

function failed(command: string, stderr: string): TuttiError {
  throwIfShort(command, stderr)
  const cause = new Error(stderr)
  return new TuttiError('internal', `git ${command} failed; the log has its output.`, { command }, cause)
}
