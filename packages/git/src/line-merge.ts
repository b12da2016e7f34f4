/** `count` lines of the base from line `start` (from 0) are replaced by `lines`. */
export interface Hunk {
  readonly start: number
  readonly count: number
  readonly lines: readonly string[]
}

export interface Version<Name> {
  readonly name: Name
  readonly hunks: readonly Hunk[]
}

/** A stretch of the base that at least two versions change differently; the merged text keeps the base there. */
export interface Overlap<Name> {
  readonly start: number
  readonly base: string
  readonly versions: readonly { readonly name: Name; readonly text: string }[]
}

/** Lines with their line ends; a last line without one stays without. One string per line, a character per byte. */
export const linesOf = (bytes: Buffer): string[] => bytes.toString('latin1').match(/[^\n]*\n|[^\n]+/g) ?? []

/**
 * Merges any number of versions of one text. Changes that do not touch are all taken, the same change is taken once, and
 * where changes touch and differ the base stays and the place is reported. The order of the versions changes nothing but
 * the order of the reports. No conflict markers are ever made, so none have to be found again.
 */
export function mergeLines<Name>(
  base: readonly string[],
  versions: readonly Version<Name>[],
): { readonly text: string; readonly overlaps: readonly Overlap<Name>[] } {
  const overlaps: Overlap<Name>[] = []
  const out: string[] = []
  let position = 0
  for (const { start, end, members } of groupTouching(versions)) {
    out.push(...base.slice(position, start))
    const texts = members.map(({ name, hunks }) => ({ name, text: apply(base, start, end, hunks) }))
    if (new Set(texts.map(({ text }) => text)).size === 1) {
      out.push(texts[0]!.text)
    } else {
      const kept = base.slice(start, end).join('')
      out.push(kept)
      overlaps.push({ start, base: kept, versions: texts })
    }
    position = end
  }
  out.push(...base.slice(position))
  return { text: joinLines(out), overlaps }
}

interface Group<Name> {
  readonly start: number
  readonly end: number
  readonly members: readonly Version<Name>[]
}

/** Hunks whose ranges overlap or touch belong together, as in git's own merge. */
function groupTouching<Name>(versions: readonly Version<Name>[]): readonly Group<Name>[] {
  const all = versions
    .flatMap(({ name, hunks }, order) => hunks.map((hunk) => ({ name, order, hunk })))
    .toSorted((a, b) => a.hunk.start - b.hunk.start || a.hunk.count - b.hunk.count || a.order - b.order)
  const groups: { start: number; end: number; entries: typeof all }[] = []
  for (const entry of all) {
    const last = groups.at(-1)
    const end = entry.hunk.start + entry.hunk.count
    if (last && entry.hunk.start <= last.end) {
      last.end = Math.max(last.end, end)
      last.entries.push(entry)
    } else {
      groups.push({ start: entry.hunk.start, end, entries: [entry] })
    }
  }
  return groups.map(({ start, end, entries }) => {
    const orders = [...new Set(entries.map(({ order }) => order))].toSorted((a, b) => a - b)
    const members = orders.map((order) => {
      const own = entries.filter((entry) => entry.order === order)
      return { name: own[0]!.name, hunks: own.map(({ hunk }) => hunk) }
    })
    return { start, end, members }
  })
}

function apply(base: readonly string[], start: number, end: number, hunks: readonly Hunk[]): string {
  const out: string[] = []
  let position = start
  for (const hunk of hunks) {
    out.push(...base.slice(position, hunk.start), ...hunk.lines)
    position = hunk.start + hunk.count
  }
  return [...out, ...base.slice(position, end)].join('')
}

/** A line that had no line end because it was the last gets one when something now follows it. */
function joinLines(parts: readonly string[]): string {
  const filled = parts.filter((part) => part !== '')
  return filled
    .map((part, index) => (index < filled.length - 1 && !part.endsWith('\n') ? `${part}\n` : part))
    .join('')
}

/** Reads the hunks of `git diff -U0` between base and version. */
export function parseHunks(patch: string, version: readonly string[]): readonly Hunk[] {
  // Not `^` with the flag m: that also stands behind a carriage return inside a line.
  return [...patch.matchAll(/(?<=\n)@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/g)].map((match) => {
    const [, oldStart = '0', oldCount = '1', newStart = '0', newCount = '1'] = match
    const count = Number(oldCount)
    // git names the line before an insertion.
    const start = count === 0 ? Number(oldStart) : Number(oldStart) - 1
    const from = Number(newCount) === 0 ? Number(newStart) : Number(newStart) - 1
    return { start, count, lines: version.slice(from, from + Number(newCount)) }
  })
}
