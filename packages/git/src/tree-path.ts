import { TuttiError } from '@tutti/core'

const maxPathBytes = 4096

/**
 * Why a path must not go into a tree, or undefined. git itself lets `a/.git/config` through fast-import, and other systems
 * fold several spellings into `.git` (SEC-01): this check has to come first.
 */
export function refusePath(path: Uint8Array): string | undefined {
  if (path.length === 0) return 'it is empty'
  if (path.length > maxPathBytes) return `it is longer than ${maxPathBytes} bytes`
  if (path.includes(0)) return 'it has a NUL byte'
  const text = Buffer.from(path).toString('utf8')
  for (const part of text.split('/')) {
    if (part === '') return 'it has an empty part'
    if (part === '.' || part === '..') return 'it has a . or .. part'
    if (part.split('\\').some(isDotGit)) return 'it leads into a .git folder'
  }
  return undefined
}

/** @throws TuttiError `invalid_argument` with the path. */
export function checkPath(path: Uint8Array): void {
  const why = refusePath(path)
  if (why === undefined) return
  const shown = Buffer.from(path.subarray(0, 200)).toString('utf8')
  throw new TuttiError('invalid_argument', `The path ${JSON.stringify(shown)} is refused: ${why}.`, {
    field: 'changes.path',
    path: shown,
  })
}

/** As macOS (ignores some characters, folds case) and Windows (short names, trailing dots, blanks and streams) would read it. */
function isDotGit(part: string): boolean {
  const folded = part.replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '').toLowerCase()
  return /^(?:\.git|git~1)[ .]*(?::.*)?$/s.test(folded)
}

/** The path in git's quoted form; works for any byte. */
export function quotePath(path: Uint8Array): Buffer {
  const out: number[] = [0x22]
  for (const byte of path) {
    if (byte === 0x22 || byte === 0x5c) out.push(0x5c, byte)
    else if (byte < 0x20 || byte === 0x7f) out.push(0x5c, ...Buffer.from(byte.toString(8).padStart(3, '0')))
    else out.push(byte)
  }
  out.push(0x22)
  return Buffer.from(out)
}
