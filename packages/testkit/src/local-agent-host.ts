import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, isAbsolute, join, normalize } from 'node:path'
import { TuttiError, throwIfCancelled } from '@tutti/core'

// The shapes of `AgentHost` are written out here: testkit stands below @tutti/agent, whose tests use it. Where a test passes
// this host as an `AgentHost`, the compiler proves that the two agree.
export interface LocalExecRequest {
  readonly argv: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: Uint8Array
  readonly timeoutMs?: number
}

export type LocalExecOutput = { readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }

export interface LocalExecExit {
  readonly code: number | null
  readonly signal?: string
  readonly timedOut: boolean
}

/** An agent's host without a sandbox, for tests only: real processes in a temporary folder, no isolation at all. */
export interface LocalAgentHost {
  readonly workdir: string
  readonly home: string
  /** How often `toolEnded` was called. */
  readonly toolEndedCount: number
  exec(request: LocalExecRequest, signal: AbortSignal): AsyncGenerator<LocalExecOutput, LocalExecExit>
  readFile(path: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array>
  writeFile(path: string, bytes: Uint8Array, signal: AbortSignal): Promise<void>
  toolEnded(signal: AbortSignal): Promise<void>
  news(): string
  /** Ends what still runs and removes the folders. */
  dispose(): Promise<void>
}

const graceMs = 500

/** Makes a host in a new temporary folder. `env` is all that its processes get beside PATH and HOME. */
export async function createLocalAgentHost(
  env: Readonly<Record<string, string>> = {},
): Promise<LocalAgentHost> {
  const root = await mkdtemp(join(tmpdir(), 'tutti-agent-host-'))
  const workdir = join(root, 'work')
  const home = join(root, 'home')
  await mkdir(workdir)
  await mkdir(home)
  const groups = new Set<number>()
  let toolEndedCount = 0

  async function* exec(
    request: LocalExecRequest,
    signal: AbortSignal,
  ): AsyncGenerator<LocalExecOutput, LocalExecExit> {
    throwIfCancelled(signal)
    const [program, ...args] = request.argv
    const child = spawn(program ?? '', args, {
      cwd: request.cwd === undefined ? workdir : inside(request.cwd),
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: home, ...env, ...request.env },
      detached: true,
      stdio: 'pipe',
    })
    const group = child.pid
    if (group !== undefined) groups.add(group)
    const queue: LocalExecOutput[] = []
    let exit: LocalExecExit | undefined
    let failure: Error | undefined
    let timedOut = false
    let wake = () => {}
    const timers: NodeJS.Timeout[] = []
    const end = () => {
      if (group === undefined) return
      killGroup(group, 'SIGTERM')
      timers.push(setTimeout(() => killGroup(group, 'SIGKILL'), graceMs))
    }
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].on('data', (bytes: Uint8Array) => {
        queue.push({ stream, bytes })
        // A slow reader slows the program, as a pipe does.
        if (queue.length > 64) child[stream].pause()
        wake()
      })
    }
    child.once('error', (error) => {
      failure = error
      wake()
    })
    child.once('close', (code, name) => {
      exit = { code, ...(name === null ? {} : { signal: name }), timedOut }
      wake()
    })
    // A program that does not read its input ends with a broken pipe here; that is its right.
    child.stdin.on('error', () => {})
    child.stdin.end(request.stdin ?? new Uint8Array())
    if (request.timeoutMs !== undefined) {
      timers.push(
        setTimeout(() => {
          timedOut = true
          end()
        }, request.timeoutMs),
      )
    }
    signal.addEventListener('abort', end, { once: true })
    try {
      for (;;) {
        const next = queue.shift()
        if (next !== undefined) {
          yield next
          continue
        }
        child.stdout.resume()
        child.stderr.resume()
        if (failure !== undefined) {
          const text = `${program}: ${failure.message}\n`
          yield { stream: 'stderr', bytes: new TextEncoder().encode(text) }
          return { code: 127, timedOut: false }
        }
        if (exit !== undefined) {
          throwIfCancelled(signal)
          return exit
        }
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    } finally {
      signal.removeEventListener('abort', end)
      if (group !== undefined) {
        if (exit === undefined && failure === undefined) {
          killGroup(group, 'SIGKILL')
          await once(child, 'close')
        }
        killGroup(group, 'SIGKILL')
        groups.delete(group)
      }
      for (const timer of timers) clearTimeout(timer)
    }
  }

  function inside(path: string): string {
    const clean = normalize(path)
    if (isAbsolute(clean) || clean === '..' || clean.startsWith('../')) {
      throw new TuttiError('invalid_argument', `${path} is outside the workspace; use a path inside it.`, {
        path,
      })
    }
    return join(workdir, clean)
  }

  return {
    workdir,
    home,
    get toolEndedCount() {
      return toolEndedCount
    },
    exec,
    async readFile(path, maxBytes, signal) {
      throwIfCancelled(signal)
      const file = await open(inside(path), 'r').catch((error: unknown) => {
        throw new TuttiError('not_found', `There is no file ${path}; list the folder first.`, { path }, error)
      })
      try {
        const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0)
        return buffer.subarray(0, bytesRead)
      } finally {
        await file.close()
      }
    },
    async writeFile(path, bytes, signal) {
      throwIfCancelled(signal)
      const target = inside(path)
      await mkdir(dirname(target), { recursive: true })
      await writeFile(target, bytes)
    },
    async toolEnded(signal) {
      throwIfCancelled(signal)
      toolEndedCount += 1
    },
    news: () => '',
    async dispose() {
      for (const group of groups) killGroup(group, 'SIGKILL')
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

function killGroup(group: number, name: NodeJS.Signals): void {
  try {
    process.kill(-group, name)
  } catch {
    // Already gone.
  }
}
