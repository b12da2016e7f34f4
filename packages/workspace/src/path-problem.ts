import { pathKey } from './path-key.ts'

/** Code points that some file systems drop when they compare names, so that `.g<200c>it` opens `.git` (CVE-2014-9390). */
const ignorable = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g

/**
 * Why a path below a workspace must not be captured, applied or committed; undefined when it may be. Checked on both ends: the inside
 * cannot be trusted to have checked.
 *
 * Refused are absolute and empty paths, the components `.`, `..` and empty, NUL bytes, and everything that any file system
 * takes for `.git` (also case-folded, `git~1`, with ignorable code points, with trailing dots or spaces, with an NTFS stream).
 */
export function pathProblem(path: Uint8Array): string | undefined {
  if (path.length === 0) return 'empty path'
  if (path.length > 4096) return 'path longer than 4096 bytes'
  if (path.includes(0)) return 'NUL byte'
  for (const component of pathKey(path).split('/')) {
    if (component === '') return 'empty component'
    if (component.length > 255) return 'component longer than 255 bytes'
    if (component === '.' || component === '..') return `component ${component}`
    if (isGitName(component)) return 'component .git'
  }
  return undefined
}

/** Whether a file system could take this name (a {@link pathKey}) for `.git`. */
export function isGitName(key: string): boolean {
  const plain = foldedName(key)
  return plain === '.git' || plain === 'git~1'
}

function foldedName(key: string): string {
  const text = Buffer.from(key, 'latin1').toString('utf8')
  const stream = text.indexOf(':')
  return (stream < 0 ? text : text.slice(0, stream))
    .replace(ignorable, '')
    .replace(/[. ]+$/, '')
    .toLowerCase()
}
