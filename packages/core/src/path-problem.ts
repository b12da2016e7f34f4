/** Code points that some file systems drop when they compare names, so that `.g<200c>it` opens `.git` (CVE-2014-9390). */
const ignorable = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g

const maxPathBytes = 4096
/** Linux takes no longer name. */
const maxNameBytes = 255
const slash = 0x2f
const dot = 0x2e

/** A byte order mark at the start of a name is part of the name; bytes that are no UTF-8 cannot spell `.git`. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Why a path below a workspace must not be captured, applied or committed; undefined when it may be. Every place that takes a path
 * asks: none can trust that another has (SEC-01). git itself lets `a/.git/config` through fast-import.
 *
 * Refused are absolute and empty paths, the parts `.`, `..` and empty, NUL bytes, parts above 255 bytes, paths above 4096
 * bytes, and every part that {@link isGitName}. A backslash is an ordinary character of a name otherwise.
 */
export function pathProblem(path: Uint8Array): string | undefined {
  if (path.length === 0) return 'it is empty'
  if (path.length > maxPathBytes) return `it is longer than ${maxPathBytes} bytes`
  if (path.includes(0)) return 'it has a NUL byte'
  for (let start = 0; start <= path.length;) {
    const next = path.indexOf(slash, start)
    const end = next < 0 ? path.length : next
    const part = path.subarray(start, end)
    if (part.length === 0) return 'it has an empty part'
    if (part.length > maxNameBytes) return `it has a part longer than ${maxNameBytes} bytes`
    if (part.length <= 2 && part.every((byte) => byte === dot)) return 'it has a . or .. part'
    if (isGitName(part)) return 'it leads into a .git folder'
    start = end + 1
  }
  return undefined
}

/**
 * Whether any file system could take this name for `.git`, or for a path with such a part: case folded, with ignorable code points
 * (macOS), as `git~1`, with trailing dots, blanks or a stream, or behind or before a backslash (Windows).
 */
export const isGitName = (name: Uint8Array): boolean =>
  mayBeGitName(name) && utf8.decode(name).split('\\').some(isGitPart)

const [g, i, t] = Buffer.from('git')
const lowered = 0x20

/** Only these are worth decoding: what is ASCII and has no `git` in it is no such name. */
function mayBeGitName(name: Uint8Array): boolean {
  return name.some(
    (byte, at) =>
      byte > 0x7f ||
      ((byte | lowered) === g && (name[at + 1]! | lowered) === i && (name[at + 2]! | lowered) === t),
  )
}

function isGitPart(part: string): boolean {
  const stream = part.indexOf(':')
  const folded = (stream < 0 ? part : part.slice(0, stream))
    .replace(ignorable, '')
    .replace(/[. ]+$/, '')
    .toLowerCase()
  return folded === '.git' || folded === 'git~1'
}
