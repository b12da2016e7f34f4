import { isDeepStrictEqual } from 'node:util'
import { eventPath } from '@tutti/workspace/log'
import { pathKey } from '@tutti/workspace'
import type { RecoveryEvent } from '@tutti/protocol'
import type { GitQuestion, InsideReport } from './inside-program.ts'

export interface Missing {
  readonly missing: RecoveryEvent['missing']
  /** There is more of it. */
  readonly isCut: boolean
}

/**
 * How a recovered workspace differs from what it must be, in lines for people; empty when it does not. A path may differ when `missing` names it, or
 * a folder that it is in.
 */
export function compareReports(
  expected: InsideReport,
  actual: InsideReport,
  { missing, isCut }: Missing,
): string[] {
  const named = new Set(missing.map((entry) => pathKey(eventPath(entry)).replace(/\/$/, '')))
  const isNamed = (key: string) => named.has(key) || parents(key).some((parent) => named.has(parent))
  const holders = new Set([...named].flatMap(parents))
  const wrong: string[] = []
  for (const key of new Set([...Object.keys(expected.tree), ...Object.keys(actual.tree)])) {
    const [before, after] = [expected.tree[key], actual.tree[key]]
    if (isDeepStrictEqual(before, after) || isNamed(key) || isCut) continue
    // It was there for what is missing.
    if (before?.type === 'dir' && !after && holders.has(key)) continue
    wrong.push(`${JSON.stringify(key)}: ${JSON.stringify(before)} is now ${JSON.stringify(after)}`)
  }
  // What lies in a nested repository that is none any more, or in a folder that was shut, git sees with other eyes.
  const repositories = Object.entries(expected.tree).flatMap(([key, { type }]) =>
    type === 'git' && actual.tree[key]?.type !== 'git' ? [key.slice(0, -'/.git'.length)] : [],
  )
  const isOther = (key: string) =>
    isNamed(key) || [...repositories, ...expected.shut].some((folder) => isIn(key, folder))
  // A file that filters would write otherwise is as it was; git says so only while it remembers when it looked. The tree and the index are
  // compared by themselves.
  const withoutFilters = (entry: string) => entry.replace(/^([12] .)M (N\.\.\. \d+ (\d+) \3 )/, '$1. $2')
  const isComparable = (entry: string) => !entry.startsWith('1 .. ') && !pathsOf(entry).some(isOther)
  for (const question of Object.keys(expected.git) as GitQuestion[]) {
    if (named.has('.git') || (named.has('.git/index') && /index|status/.test(question))) continue
    // git waits for ever for a fifo in the place of an ignore file, which is not made again.
    if (question === 'status' && named.size > 0 && expected.git[question].startsWith('failed: ')) continue
    const [before, after] = [expected, actual].map(({ git }) => {
      const entries = question === 'status' ? statusOf(git[question]) : git[question].split(/[\0\n]/)
      if (question === 'status') return entries.map(withoutFilters).filter(isComparable)
      if (question !== 'index') return entries
      // Whether git keeps a flag depends on whether it can look at the file.
      return entries.map((entry) => (isOther(entry.slice(entry.indexOf('\t') + 1)) ? entry.slice(2) : entry))
    }) as [string[], string[]]
    if (isDeepStrictEqual(before, after)) continue
    const lost = before.filter((entry) => !after.includes(entry))
    const added = after.filter((entry) => !before.includes(entry))
    const isMoved = lost.length + added.length === 0
    wrong.push(
      isMoved
        ? `${question}: another order or number, ${JSON.stringify(before)} is now ${JSON.stringify(after)}`
        : `${question}: ${JSON.stringify(lost)} is now ${JSON.stringify(added)}`,
    )
  }
  return wrong
}

const isIn = (key: string, folder: string): boolean => key === folder || key.startsWith(`${folder}/`)

function parents(key: string): string[] {
  const parts = key.split('/')
  return parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join('/'))
}

/** Entries of `status --porcelain=v2 -z`; a rename has both paths, with a NUL between. One that failed is one entry. */
function statusOf(text: string): string[] {
  if (text.startsWith('failed: ')) return [text]
  const fields = text.split('\0')
  const entries: string[] = []
  for (let at = 0; at < fields.length - 1; at += 1) {
    const field = fields[at]!
    entries.push(field.startsWith('2 ') ? `${field}\0${fields[(at += 1)]}` : field)
  }
  return entries
}

/** How many fields stand before the path, by the first letter of an entry. */
const fieldsBefore: Readonly<Record<string, number>> = { '1': 8, '2': 9, u: 10 }

function pathsOf(entry: string): string[] {
  return entry
    .split(' ')
    .slice(fieldsBefore[entry[0]!] ?? 1)
    .join(' ')
    .split('\0')
}
