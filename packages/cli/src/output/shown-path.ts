import { isUtf8 } from 'node:buffer'

/** Controls, format characters, spaces that are not the usual one, what no font knows; also the joiners that emoji may have or not. */
const invisible = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u
const short: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/**
 * A path for a person: one line, safe in a terminal, and different for different bytes. What is plain to see stands as it is.
 * Everything else stands in double quotes, with escapes for quotes and backslashes, for what is invisible (`\n`, `\x1b`, `\u{200b}`,
 * spaces that are not alone between letters), for letters that are not in the composed Unicode form (`e\u{301}`), and for bytes
 * that are no UTF-8 (`\xff`). Letters of two scripts that look alike are not told apart.
 */
export function shownPath(path: string | Uint8Array): string {
  const bytes = Buffer.from(path as Uint8Array)
  if (/^[\w./+@%=:,~#-]*$/.test(bytes.toString('latin1'))) return bytes.toString()
  const shown = textRuns(bytes)
    .map((run) => (typeof run === 'number' ? byteEscape(run) : shownText(run)))
    .join('')
    .replace(/^ | $| (?= )/g, String.raw`\u{20}`)
  return Buffer.from(shown).equals(bytes) ? shown : `"${shown}"`
}

const shownText = (text: string): string =>
  Array.from(graphemes.segment(text), ({ segment }) => {
    const composed = segment.normalize('NFC') === segment
    return Array.from(segment, (character) => shownCharacter(character, composed)).join('')
  }).join('')

function shownCharacter(character: string, composed: boolean): string {
  const code = character.codePointAt(0)!
  const isAscii = code < 0x80
  if (character === ' ' || (!invisible.test(character) && (composed || isAscii)))
    return short[character] ?? character
  return short[character] ?? (isAscii ? byteEscape(code) : `\\u{${code.toString(16)}}`)
}

const byteEscape = (byte: number): string => `\\x${byte.toString(16).padStart(2, '0')}`

/** The bytes as texts and, where they are no UTF-8, as single bytes. */
function textRuns(bytes: Buffer): (string | number)[] {
  const runs: (string | number)[] = []
  let rest = bytes
  while (rest.length > 0) {
    const end = validLength(rest)
    if (end > 0) runs.push(rest.toString('utf8', 0, end))
    if (end < rest.length) runs.push(rest[end]!)
    rest = rest.subarray(end + 1)
  }
  return runs
}

/** How many of the first bytes are UTF-8. */
function validLength(bytes: Buffer): number {
  let end = 0
  while (end < bytes.length) {
    const length = [1, 2, 3, 4].find((count) => isUtf8(bytes.subarray(end, end + count)))
    if (length === undefined) return end
    end += Math.min(length, bytes.length - end)
  }
  return end
}
