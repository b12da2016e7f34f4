import type { Conflict } from '@tutti/proto'
import { safeLine } from '../output/terminal-text.ts'
import { wrap } from '../output/wrap.ts'

const shownConflicts = 20

/** What happened, and what is in the result there; the rules are those of decision 0031. */
const kinds: Readonly<Record<string, string>> = {
  content: 'changed differently; the base was kept there',
  binary: 'a binary file, changed differently; the base was kept',
  modify_delete: 'changed by one, deleted by another; the base was kept',
  type: 'a file for one, something else for another; the base was kept',
  add_add: 'new, with different content; the first one was kept',
  mode: 'new, with different modes; the first one was kept',
}

/** One line per conflict, at most twenty: where, how many versions, and what was kept. */
export function conflictLines(conflicts: readonly Conflict[], width: number): string[] {
  const lines = conflicts.slice(0, shownConflicts).flatMap(({ path, line, kind, versions }) => {
    const place = kind === 'content' && line > 0 ? `:${line}` : ''
    const what = Object.hasOwn(kinds, kind) ? kinds[kind] : safeLine(kind)
    return wrap(`${safeLine(path)}${place}  ${versions.length} versions, ${what}`, width, '  ')
  })
  const more = conflicts.length - shownConflicts
  return more > 0 ? [...lines, `  … and ${more} more`] : lines
}
