import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { TuttiError } from '@tutti/core'
import type { CallStream } from '../link/call.ts'

export interface ExecParams {
  readonly argv: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly timeoutMs?: number
}

export interface ExecResult {
  readonly code: number | null
  readonly signal?: string
  readonly timedOut: boolean
}

export interface ExecSurroundings {
  readonly workdir: string
  readonly stopGraceMs: number
  /** Added to the server's own environment. */
  readonly env: Readonly<Record<string, string>>
}

/** After a program has ended, what it left in the background may hold its output open: wait this long for more, in milliseconds. */
const quietMs = 100

/** Runs one program as leader of a process group of its own and sends its output as it comes. */
export async function runExec(
  params: ExecParams,
  call: CallStream,
  signal: AbortSignal,
  around: ExecSurroundings,
): Promise<ExecResult> {
  const [program, ...args] = params.argv
  if (program === undefined)
    throw new TuttiError('invalid_argument', 'A program to run must be named.', { field: 'argv' })
  const child = spawn(program, args, {
    cwd: params.cwd === undefined ? around.workdir : join(around.workdir, params.cwd),
    env: { ...process.env, ...around.env, ...params.env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>
  exited.catch(() => {})
  await once(child, 'spawn').catch((cause: NodeJS.ErrnoException) => {
    throw startError(program, params.cwd, cause)
  })

  let timedOut = false
  let stopping: Promise<void> | undefined
  const stop = () => (stopping ??= endGroup(child, around.stopGraceMs))
  const timer =
    params.timeoutMs === undefined
      ? undefined
      : globalThis.setTimeout(() => {
          timedOut = true
          void stop()
        }, params.timeoutMs)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) void stop()

  void feed(child, call)
  const drains = [drainTo(child.stdout!, 'stdout', call), drainTo(child.stderr!, 'stderr', call)]
  const [code, exitSignal] = await exited
  await Promise.race([Promise.all(drains.map((drain) => drain.finished)), quietness(drains)])
  for (const drain of drains) drain.abandon()
  await stopping
  clearTimeout(timer)
  signal.removeEventListener('abort', stop)
  return { code, ...(exitSignal ? { signal: exitSignal } : {}), timedOut }
}

interface Drain {
  readonly finished: Promise<void>
  /** Since when it waits for output; undefined while it waits for the reader. */
  waitingSince(): number | undefined
  /** Reads on, so that a background process can write, but keeps nothing. */
  abandon(): void
}

function drainTo(stream: Readable, name: 'stdout' | 'stderr', call: CallStream): Drain {
  let waitingSince: number | undefined = performance.now()
  let abandoned = false
  const run = async () => {
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        if (abandoned) continue
        waitingSince = undefined
        await call.send(name, chunk).catch(() => (abandoned = true))
        waitingSince = performance.now()
      }
    } catch {
      // The pipe broke; there is no more output.
    }
  }
  return { finished: run(), waitingSince: () => waitingSince, abandon: () => (abandoned = true) }
}

/** Resolves when no output has come for a while although everyone was ready for it. */
async function quietness(drains: readonly Drain[]): Promise<void> {
  const start = performance.now()
  for (;;) {
    await setTimeout(quietMs / 4)
    const now = performance.now()
    const quiet = (drain: Drain) => now - Math.max(drain.waitingSince() ?? now, start) >= quietMs
    if (drains.every(quiet)) return
  }
}

async function feed(child: ChildProcess, call: CallStream): Promise<void> {
  const stdin = child.stdin!
  stdin.on('error', () => {})
  try {
    for await (const { bytes } of call.messages) {
      if (!stdin.write(bytes)) await Promise.race([once(stdin, 'drain'), once(stdin, 'close')])
    }
  } catch {
    // The caller gave up.
  }
  stdin.end()
}

/** SIGTERM to the group, after the grace SIGKILL. */
async function endGroup(child: ChildProcess, graceMs: number): Promise<void> {
  const group = -child.pid!
  if (!signalGroup(group, 'SIGTERM')) return
  const end = performance.now() + graceMs
  while (performance.now() < end) {
    await setTimeout(15)
    if (!signalGroup(group, 0)) return
  }
  signalGroup(group, 'SIGKILL')
}

function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(group, signal)
  } catch {
    return false
  }
}

function startError(program: string, cwd: string | undefined, cause: NodeJS.ErrnoException): TuttiError {
  if (cause.code === 'ENOENT') {
    return new TuttiError(
      'not_found',
      `There is no program ${program} in the sandbox${cwd === undefined ? '' : `, or no folder ${cwd}`}; mount it with --mount.`,
      { program },
      cause,
    )
  }
  if (cause.code === 'EAGAIN' || cause.code === 'ENOMEM') {
    const limit = cause.code === 'EAGAIN' ? 'pids' : 'memory'
    return new TuttiError(
      'resource_exhausted',
      `${program} cannot be started: the sandbox has no processes or memory left.`,
      { program, reason: 'resource_limit', limit },
      cause,
    )
  }
  return new TuttiError(
    'failed_precondition',
    `${program} cannot be started in the sandbox (${cause.code}).`,
    { program },
    cause,
  )
}
