import { parseDirective, type Directive } from './parse-directive.ts'

/** What a line of standard output starts with when a program speaks to Tutti instead of to its terminal. */
export const directivePrefix = '::tutti:: '

/** A longer line is output, whatever it starts with, so that a line without an end cannot fill the memory. */
const maxDirectiveChars = 64 << 10

export type OutputPiece = { readonly text: string } | { readonly directive: Directive }

/**
 * Tells a program's events from its output. A line `::tutti:: {json}` with a known event is a directive; everything else is
 * output and passes at once, except the start of a line that may still become one. A malformed directive stays output, so that
 * nothing a program printed is ever hidden.
 */
export interface DirectiveSplitter {
  push(text: string): OutputPiece[]
  /** What was held back when the output ended. */
  end(): OutputPiece[]
}

export function createDirectiveSplitter(): DirectiveSplitter {
  let held = ''
  let atLineStart = true
  const split = (text: string, ended: boolean): OutputPiece[] => {
    const pieces: OutputPiece[] = []
    let output = ''
    let rest = held + text
    held = ''
    while (rest !== '') {
      const newline = rest.indexOf('\n')
      const line = newline < 0 ? rest : rest.slice(0, newline + 1)
      if (atLineStart && newline < 0 && !ended && mayBeDirective(line)) {
        held = line
        break
      }
      const directive = atLineStart ? directiveOf(line) : undefined
      if (directive === undefined) {
        output += line
      } else {
        if (output !== '') pieces.push({ text: output })
        output = ''
        pieces.push({ directive })
      }
      atLineStart = newline >= 0
      rest = rest.slice(line.length)
    }
    if (output !== '') pieces.push({ text: output })
    return pieces
  }
  return { push: (text) => split(text, false), end: () => split('', true) }
}

function mayBeDirective(start: string): boolean {
  return start.length < directivePrefix.length
    ? directivePrefix.startsWith(start)
    : start.startsWith(directivePrefix) && start.length <= maxDirectiveChars
}

function directiveOf(line: string): Directive | undefined {
  if (!line.startsWith(directivePrefix) || line.length > maxDirectiveChars) return undefined
  return parseDirective(line.slice(directivePrefix.length))
}
