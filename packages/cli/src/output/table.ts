import stringWidth from 'fast-string-width'

/** Rows as aligned columns, two spaces apart; the header is given like a row. Cells must be safe, one-line text. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, stringWidth(cell))
    })
  }
  return rows.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : padEnd(cell, widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

/** Pads to a width in terminal columns. */
export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - stringWidth(text)))
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** Cuts plain text (no escapes) to a width in terminal columns; what is cut ends with `…`. */
export function truncate(text: string, width: number): string {
  if (width <= 0) return ''
  if (stringWidth(text) <= width) return text
  let result = ''
  let used = 0
  for (const { segment } of graphemes.segment(text)) {
    const next = stringWidth(segment)
    if (used + next > width - 1) break
    result += segment
    used += next
  }
  return `${result}…`
}
