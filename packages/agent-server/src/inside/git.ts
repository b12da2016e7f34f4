import { spawn } from 'node:child_process'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { TuttiError, type ErrorCode } from '@tutti/core'

export interface GitRun {
  readonly cwd: string
  /** Taken as fast as git reads it. */
  readonly input?: Uint8Array | AsyncIterable<Uint8Array>
  /** Beside what the sandbox has; no other `GIT_` variable reaches git. */
  readonly env?: Readonly<Record<string, string>>
  /** Exit codes that are answers, not failures. */
  readonly accept?: readonly number[]
  readonly signal?: AbortSignal
  /** In milliseconds. Whatever git reads may be made to block by the agent, so nothing waits for it without end. */
  readonly timeoutMs: number
}

/** Settings of the agent or the machine must not change what our own git commands do. */
const environment = {
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_LFS_SKIP_SMUDGE: '1',
  LC_ALL: 'C',
}
const settings = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'gc.auto=0',
  'maintenance.auto=false',
  'safe.directory=*',
]

/**
 * Runs git inside the sandbox, where what a repository makes it execute is the agent's own business.
 *
 * @throws TuttiError `failed_precondition` when git refuses, `deadline_exceeded` at the time limit, `cancelled` when aborted,
 * `internal` when it cannot be started or somebody else killed it, `resource_exhausted` when a file of its became larger than any may be.
 */
export function runGit(args: readonly string[], run: GitRun): Promise<Buffer> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'))
  return new Promise((resolve, reject) => {
    const { signal, timeoutMs } = run
    if (signal?.aborted) return reject(cancelled(args))
    const child = spawn('git', [...settings.flatMap((setting) => ['-c', setting]), ...args], {
      cwd: run.cwd,
      env: { ...Object.fromEntries(inherited), ...environment, ...run.env },
      // A group of its own, so that what git has started goes with it.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const output: Buffer[] = []
    let problem = ''
    const settle = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    /** The answer does not wait for the end: whoever left the group may still hold the output open. */
    const giveUp = (error: TuttiError) => {
      settle()
      killGroup(child.pid)
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
      reject(error)
    }
    const onAbort = () => giveUp(cancelled(args))
    signal?.addEventListener('abort', onAbort, { once: true })
    const timer = setTimeout(
      () => giveUp(gitError('deadline_exceeded', args, `no answer within ${timeoutMs} ms`)),
      timeoutMs,
    )
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => (problem = (problem + chunk).slice(-2000)))
    let inputProblem: TuttiError | undefined
    const input = run.input instanceof Uint8Array || !run.input ? [run.input ?? ''] : run.input
    // A git that reads no further says why itself; an input that fails is the reason of what git says.
    pipeline(Readable.from(input), child.stdin).catch((failed: unknown) => {
      if (failed instanceof TuttiError) inputProblem = failed
    })
    child.once('error', (cause) => {
      settle()
      reject(gitError('internal', args, cause.message, cause))
    })
    child.once('close', (code, killedBy) => {
      settle()
      if (code !== null && (run.accept ?? [0]).includes(code)) resolve(Buffer.concat(output))
      else if (inputProblem) reject(inputProblem)
      else if (killedBy === 'SIGXFSZ') reject(fileTooLarge(args))
      else if (code === null) reject(gitError('internal', args, `ended by ${killedBy}`))
      else reject(gitError('failed_precondition', args, problem.trim() || `exit ${code}`))
    })
  })
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has just ended.
  }
}

const cancelled = (args: readonly string[]) => new TuttiError('cancelled', `git ${args[0]} was cancelled.`)

const fileTooLarge = (args: readonly string[]) =>
  new TuttiError('resource_exhausted', `git ${args[0]} needs a larger file than the sandbox may have.`, {
    reason: 'resource_limit',
    limit: 'file_size',
  })

const gitError = (code: ErrorCode, args: readonly string[], problem: string, cause?: unknown) =>
  new TuttiError(code, `git ${args[0]} failed in the sandbox: ${problem}`, {}, cause)
