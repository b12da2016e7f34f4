import { spawn } from 'node:child_process'
import { TuttiError } from '@tutti/core'

export interface GitRun {
  readonly cwd: string
  readonly input?: Uint8Array
  /** Exit codes that are answers, not failures. */
  readonly accept?: readonly number[]
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
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

/** Runs git inside the sandbox, where what a repository makes it execute is the agent's own business. */
export function runGit(args: readonly string[], run: GitRun): Promise<Buffer> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_'))
  return new Promise((resolve, reject) => {
    const child = spawn('git', [...settings.flatMap((setting) => ['-c', setting]), ...args], {
      cwd: run.cwd,
      env: { ...Object.fromEntries(inherited), ...environment },
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(run.signal ? { signal: run.signal } : {}),
      timeout: run.timeoutMs ?? 0,
      killSignal: 'SIGKILL',
    })
    const output: Buffer[] = []
    let problem = ''
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => (problem = (problem + chunk).slice(-2000)))
    child.stdin.on('error', () => {})
    child.stdin.end(run.input ?? '')
    child.once('error', (cause) => reject(gitError(args, cause.message, cause)))
    child.once('close', (code) => {
      if (code !== null && (run.accept ?? [0]).includes(code)) resolve(Buffer.concat(output))
      else reject(gitError(args, problem.trim() || `exit ${code}`))
    })
  })
}

function gitError(args: readonly string[], problem: string, cause?: unknown): TuttiError {
  if ((cause as Error | undefined)?.name === 'AbortError') return TuttiError.from(cause)
  return new TuttiError('failed_precondition', `git ${args[0]} failed in the sandbox: ${problem}`, {}, cause)
}
