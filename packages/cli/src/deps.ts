import { readFileSync } from 'node:fs'
import { systemClock, type Clock } from '@tutti/core'
import type { Stream } from './output/output.ts'
import type { StackParts } from './stack/parts.ts'

/** Everything outside the program that its commands touch. */
export interface CliDeps {
  readonly stdout: Stream
  readonly stderr: Stream
  /** All of standard input as text. */
  readStdin(): Promise<string>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly clock: Clock
  /** Calls back for each signal until the returned function is called. */
  onSignal(name: NodeJS.Signals, listener: () => void): () => void
  /** Ends the process at once. */
  exitNow(code: number): never
  /** The exit code of the process when it ends by itself. */
  setExitCode(code: number): void
  /** Loaded only by commands that start servers. */
  loadParts(): Promise<StackParts>
}

/** The real process. */
export function createProcessDeps(loadParts: CliDeps['loadParts']): CliDeps {
  const { stdout, stderr } = process
  let isDataLost = false
  const setExitCode = (code: number) => {
    process.exitCode = code === 0 && isDataLost ? 1 : code
  }
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that has enough (`tutti agent events … | head`) is no error.
    if (error.code === 'EPIPE') process.exit(0)
    if (!isDataLost) stderr.write(`Standard output cannot be written (${error.code}); data is lost.\n`)
    isDataLost = true
    setExitCode(Number(process.exitCode ?? 0))
  })
  // A full disk or a closed terminal costs talk and log lines, never the work.
  stderr.on('error', () => {})
  return {
    stdout: streamOf(stdout),
    stderr: streamOf(stderr),
    readStdin: async () => readFileSync(0, 'utf8'),
    env: process.env,
    cwd: process.cwd(),
    clock: systemClock,
    onSignal(name, listener) {
      process.on(name, listener)
      return () => process.off(name, listener)
    },
    exitNow: (code) => process.exit(code),
    setExitCode,
    loadParts,
  }
}

function streamOf(stream: NodeJS.WriteStream): Stream {
  return {
    write: (text) => void stream.write(text),
    get isTTY() {
      return stream.isTTY === true
    },
    // A terminal that does not know its size says 0.
    get columns() {
      return stream.columns || 80
    },
    get rows() {
      return stream.rows || 24
    },
  }
}
