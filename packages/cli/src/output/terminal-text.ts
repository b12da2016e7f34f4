/** Where untrusted text is going to be shown. */
export interface TextTarget {
  /** A terminal that is allowed colours: SGR colour codes in the text survive, everything else does not. */
  readonly colors: boolean
}

/**
 * What a terminal or a reader could be fooled with: C0 and C1 controls, DEL, line and paragraph separators, direction marks,
 * invisible characters, and tag characters. Tab and newline are dealt with by the callers; the joiners of emoji stay.
 */
const unsafe =
  // oxlint-disable-next-line no-control-regex -- these are the characters that this module exists for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e0fff}]/gu

// oxlint-disable-next-line no-control-regex -- as above
const sgr = /\u001b\[([0-9;]*)m/g

/**
 * Untrusted text with its lines, for a person (SEC-08). In a terminal only colours survive, and they end with the text; in a
 * pipe they are removed. Any other control or direction character is shown as an escape such as `\x1b` or `\u202e`, so that
 * the text can neither command the terminal nor look like other text. A line end may be CRLF.
 */
export function safeText(text: string, target: TextTarget): string {
  const shown = text.replaceAll('\r\n', '\n')
  let result = ''
  let colored = false
  let last = 0
  for (const match of shown.matchAll(sgr)) {
    result += visible(shown.slice(last, match.index))
    last = match.index + match[0].length
    if (!target.colors) continue
    const codes = colorCodes(match[1] ?? '')
    if (codes === undefined) continue
    colored = true
    result += `\u001b[${codes}m`
  }
  result += visible(shown.slice(last))
  return colored ? `${result}\u001b[0m` : result
}

/** Untrusted text as exactly one line: line ends are shown as `\n`, a tab as a space. No colours. */
export function safeLine(text: string): string {
  return safeText(text, { colors: false }).replaceAll('\n', '\\n').replaceAll('\t', ' ')
}

/** The last line of untrusted text that says something: of an agent's output, what it does now or did in the end. */
export function lastLine(text: string): string {
  return safeLine(text.trimEnd().split('\n').at(-1)?.trim() ?? '')
}

/**
 * JSON text that reads back to exactly the same value and is safe to print: what JSON.stringify leaves raw (C1 controls,
 * direction marks, separators) is escaped as \uXXXX.
 */
export function safeJson(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, undefined, indent)
  return text.replace(unsafe, (character) => (character === '\n' ? character : unicodeEscapes(character)))
}

const visible = (text: string): string => text.replace(unsafe, escape)

function escape(character: string): string {
  const code = character.codePointAt(0)!
  if (character === '\r') return '\\r'
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`
  return code <= 0xffff ? unicodeEscapes(character) : `\\u{${code.toString(16)}}`
}

function unicodeEscapes(character: string): string {
  let result = ''
  for (let index = 0; index < character.length; index += 1) {
    result += `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
  }
  return result
}

/** The colour and weight codes of an SGR sequence; undefined when nothing allowed is in it. Concealed and blinking text is not. */
function colorCodes(parameters: string): string | undefined {
  const numbers = parameters === '' ? [0] : parameters.split(';').map(Number)
  const kept: number[] = []
  for (let index = 0; index < numbers.length; index += 1) {
    const code = numbers[index]!
    if (code === 38 || code === 48) {
      const length = numbers[index + 1] === 5 ? 3 : numbers[index + 1] === 2 ? 5 : 0
      const color = numbers.slice(index, index + length)
      if (length === 0 || color.length < length || color.some((part) => part > 255)) return undefined
      kept.push(...color)
      index += length - 1
    } else if (isPlainColor(code)) kept.push(code)
  }
  return kept.length > 0 ? kept.join(';') : undefined
}

const isPlainColor = (code: number): boolean =>
  [0, 1, 2, 3, 4, 22, 23, 24].includes(code) ||
  (code >= 30 && code <= 37) ||
  code === 39 ||
  (code >= 40 && code <= 47) ||
  code === 49 ||
  (code >= 90 && code <= 97) ||
  (code >= 100 && code <= 107)
