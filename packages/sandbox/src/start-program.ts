import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import { TuttiError } from '@tutti/core'
import { processStart } from '@tutti/processes'
import type { Exec, ExecExit } from './port.ts'
import type { ProcessName } from './sandbox-state.ts'

export interface ProgramRequest {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Written to descriptor 3, then closed. */
  readonly secret?: string
  /** Written to descriptor 5, then closed. */
  readonly filter?: Uint8Array
  /** Descriptor 4 tells something at the start; see {@link StartedProgram.told}. */
  readonly tells?: boolean
  readonly limitHit: () => ExecExit['limit'] | undefined
  /** Signals what the program is made of, which its own pid may not be. */
  readonly signal: (signal: 'SIGTERM' | 'SIGKILL', pid: number) => void
}

export interface StartedProgram {
  readonly exec: Exec
  readonly name: ProcessName
  /** What the program wrote to descriptor 4 before it closed it; empty when it ended first. */
  readonly told: Promise<string>
}

/** Starts a host program as leader of a new session: the terminal's Ctrl-C is for Tutti, which then ends its sandboxes in order. */
export async function startProgram(request: ProgramRequest): Promise<StartedProgram> {
  const [program, ...args] = request.argv
  if (program === undefined)
    throw new TuttiError('invalid_argument', 'A program to run must be named.', { field: 'argv' })
  const child = spawn(program, args, {
    cwd: request.cwd,
    env: request.env,
    detached: true,
    stdio: [
      'pipe',
      'pipe',
      'pipe',
      request.secret === undefined ? 'ignore' : 'pipe',
      request.tells ? 'pipe' : 'ignore',
      request.filter === undefined ? 'ignore' : 'pipe',
    ],
  })
  // At once: what a child has written when it ends, and nobody is reading yet, Node throws away.
  const stdout = child.stdout!.pipe(new PassThrough())
  const stderr = child.stderr!.pipe(new PassThrough())
  const exit = exitOf(child, request.limitHit)
  await once(child, 'spawn').catch((cause: NodeJS.ErrnoException) => {
    throw new TuttiError(
      'not_found',
      `${program} cannot be started (${cause.code ?? cause.message}).`,
      { program },
      cause,
    )
  })
  const pid = child.pid!
  if (request.secret !== undefined) endPipe(child.stdio[3] as Writable, request.secret)
  // The types know the first five only.
  const stdio: readonly unknown[] = child.stdio
  if (request.filter !== undefined) endPipe(stdio[5] as Writable, request.filter)
  const stdin = child.stdin!
  // A program that ends without reading breaks the pipe; its exit says so.
  stdin.on('error', () => {})
  return {
    name: { pid, start: processStart(pid) ?? '' },
    told: request.tells ? readAll(child.stdio[4] as Readable) : Promise.resolve(''),
    exec: {
      stdout,
      stderr,
      exit,
      write: (bytes) =>
        new Promise((resolve, reject) =>
          stdin.write(bytes, (error) =>
            error
              ? reject(new TuttiError('unavailable', 'The program no longer reads its input.', {}, error))
              : resolve(),
          ),
        ),
      closeStdin: () => new Promise((resolve) => (stdin.destroyed ? resolve() : stdin.end(() => resolve()))),
      async kill(signal) {
        if (child.exitCode === null && child.signalCode === null) request.signal(signal, pid)
      },
    },
  }
}

function exitOf(child: ChildProcess, limitHit: ProgramRequest['limitHit']): Promise<ExecExit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      const limit = limitHit()
      resolve({ code, ...(signal ? { signal } : {}), ...(limit ? { limit } : {}) })
    })
    child.once('error', () => resolve({ code: null }))
  })
}

function endPipe(pipe: Writable, content: string | Uint8Array): void {
  pipe.on('error', () => {})
  pipe.end(content)
}

async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of stream) chunks.push(chunk as Buffer)
  } catch {
    // Ended in the middle: what was told so far is all there is.
  }
  return Buffer.concat(chunks).toString('utf8')
}
