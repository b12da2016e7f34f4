import { stripVTControlCharacters } from 'node:util'
import pc from 'picocolors'
import { safeJson } from './terminal-text.ts'

/** One of the two streams of the program. */
export interface Stream {
  write(text: string | Uint8Array): void
  readonly isTTY: boolean
  readonly columns: number
  readonly rows: number
}

export type OutputFormat = 'text' | 'json' | 'jsonl'

export type Palette = ReturnType<typeof pc.createColors>

/** Where a command puts what it has to say: data on stdout in the format asked for, talk on stderr. */
export interface Output {
  readonly format: OutputFormat
  readonly stdout: Stream
  readonly stderr: Stream
  /** Whether colours are wanted on that stream: a terminal, without --no-color and NO_COLOR. */
  readonly colors: { readonly stdout: boolean; readonly stderr: boolean }
  /** Colour functions for stdout; they do nothing where colours are not wanted. */
  readonly paint: Palette
  readonly paintTalk: Palette
  /** A line of data. Only for text that is safe already. */
  line(text?: string): void
  /** One JSON value on one line. */
  jsonLine(value: unknown): void
  /** One JSON value, indented for `-o json` to a terminal, on one line else. */
  json(value: unknown): void
  /** A line of talk. Only for text that is safe already. */
  say(text: string): void
  /** Calls back before each line of talk, until the returned function is called: a view that redraws itself makes room. */
  onTalk(listener: () => void): () => void
}

export interface OutputOptions {
  readonly format: OutputFormat
  readonly color: boolean
  readonly env: Readonly<Record<string, string | undefined>>
}

export function createOutput(stdout: Stream, stderr: Stream, options: OutputOptions): Output {
  const wanted = options.color && (options.env['NO_COLOR'] ?? '') === '' && options.env['TERM'] !== 'dumb'
  const forced = wanted && !['', '0', undefined].includes(options.env['FORCE_COLOR'])
  const colors = { stdout: wanted && (stdout.isTTY || forced), stderr: wanted && (stderr.isTTY || forced) }
  const listeners = new Set<() => void>()
  return {
    format: options.format,
    stdout,
    stderr,
    colors,
    paint: pc.createColors(colors.stdout),
    paintTalk: pc.createColors(colors.stderr),
    line: (text = '') => stdout.write(`${text}\n`),
    jsonLine: (value) => stdout.write(`${safeJson(value)}\n`),
    json: (value) => stdout.write(`${safeJson(value, stdout.isTTY ? 2 : undefined)}\n`),
    say(text) {
      for (const listener of listeners) listener()
      stderr.write(`${colors.stderr ? text : stripVTControlCharacters(text)}\n`)
    },
    onTalk(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** How wide text may be there: a terminal's columns; a pipe gets whole lines. */
export const textWidth = ({ isTTY, columns }: Stream): number => (isTTY ? columns : Infinity)

export const isTextOutput = (output: Output): boolean => output.format === 'text'
