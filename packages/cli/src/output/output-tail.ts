import { safeText } from './terminal-text.ts'
import { wrap } from './wrap.ts'

const shownLines = 10

export interface OutputTail {
  /** Terminal columns; Infinity: nothing is wrapped. */
  readonly width: number
  readonly indent: string
  /** The first line says what the rest is the output of, and stays. */
  readonly keepFirst?: boolean
}

/** The last ten lines of untrusted output, safe and wrapped; says how many lines are not shown. */
export function outputTail(text: string, { width, indent, keepFirst = false }: OutputTail): string[] {
  const lines = safeText(text.replace(/^\n+/, '').trimEnd(), { colors: false }).split('\n')
  const first = keepFirst ? lines.splice(0, 1) : []
  const hidden = lines.length - shownLines
  const gap = hidden > 0 ? [`… ${hidden} line${hidden === 1 ? '' : 's'} not shown`] : []
  return [...first, ...gap, ...lines.slice(-shownLines)].flatMap((line) => wrap(line, width, indent))
}
