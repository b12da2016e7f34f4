import stringWidth from 'fast-string-width'

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/**
 * Lines of safe text as lines of at most `width` terminal columns, each behind the indentation: broken between words,
 * within a word only where it is longer than a line. Nothing is lost but the space at a break. Infinity: not broken at all. Text may
 * have colours, as long as no word is longer than a line.
 */
export function wrap(text: string, width: number, indent = ''): string[] {
  const room = Math.max(10, width - indent.length)
  return text.split('\n').flatMap((line) => breakLine(line, room).map((part) => `${indent}${part}`.trimEnd()))
}

function breakLine(line: string, room: number): string[] {
  if (stringWidth(line) <= room) return [line]
  const lines: string[] = []
  let current = ''
  // A word goes with the space before it, so that an indentation stays.
  for (const word of line.match(/\s*\S+/g) ?? []) {
    if (stringWidth(current + word) <= room) {
      current += word
      continue
    }
    if (current !== '') lines.push(current)
    const pieces = breakWord(current === '' ? word : word.trimStart(), room)
    lines.push(...pieces.slice(0, -1))
    current = pieces.at(-1)!
  }
  return [...lines, current]
}

function breakWord(word: string, room: number): string[] {
  const pieces: string[] = []
  let current = ''
  let used = 0
  for (const { segment } of graphemes.segment(word)) {
    const next = stringWidth(segment)
    if (used + next > room) {
      pieces.push(current)
      current = ''
      used = 0
    }
    current += segment
    used += next
  }
  return [...pieces, current]
}
