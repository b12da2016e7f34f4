import { isUtf8 } from 'node:buffer'
import { TuttiError, visibleText } from '@tutti/core'
import type { Palette } from './output.ts'
import { patchPaths } from './patch-paths.ts'
import { shownPath } from './shown-path.ts'
import { isBinaryPatch, splitPatch, type PatchFile } from './split-patch.ts'
import { safeLine } from './terminal-text.ts'

/** What the answers of DiffAgent and DiffPullRequest have in common. */
interface PatchPiece {
  readonly baseCommit: string
  readonly commit: string
  readonly filesChanged: number
  readonly patch: Uint8Array
}

export interface Patch {
  readonly baseCommit: string
  readonly commit: string
  readonly filesChanged: number
  /** The output of `git diff --binary`; bytes, since files need not be UTF-8. */
  readonly bytes: Uint8Array
  /** Why `bytes` is only the start of the patch, when it is. */
  readonly cut?: TuttiError
}

/** The bytes for a program, which must not take a part for the whole. @throws TuttiError `resource_exhausted` when they were cut. */
export function wholePatch({ bytes, cut }: Patch): Uint8Array {
  if (cut) throw cut
  return bytes
}

export async function collectPatch(pieces: AsyncIterable<PatchPiece>): Promise<Patch> {
  let first: PatchPiece | undefined
  const parts: Uint8Array[] = []
  let cut: TuttiError | undefined
  try {
    for await (const piece of pieces) {
      first ??= piece
      parts.push(piece.patch)
    }
  } catch (thrown) {
    if (!first || !(thrown instanceof TuttiError) || thrown.code !== 'resource_exhausted') throw thrown
    cut = thrown
  }
  return {
    baseCommit: first?.baseCommit ?? '',
    commit: first?.commit ?? '',
    filesChanged: first?.filesChanged ?? 0,
    bytes: Buffer.concat(parts),
    ...(cut && { cut }),
  }
}

/**
 * A patch in JSON, byte for byte: as `patch` where it is UTF-8, which JSON's text can hold, else as `patch_base64`. A text in another
 * encoding is enough for the latter; binary files alone are not, as git writes them in ASCII.
 */
export const patchJson = (
  bytes: Uint8Array,
): { readonly patch: string } | { readonly patch_base64: string } =>
  isUtf8(bytes)
    ? { patch: Buffer.from(bytes).toString('utf8') }
    : { patch_base64: Buffer.from(bytes).toString('base64') }

/** A patch for a person: coloured by line, what is deceptive in the files made visible, binary contents left out, at most `maxLines` lines. */
export function renderPatch(
  { bytes, cut }: Pick<Patch, 'bytes' | 'cut'>,
  paint: Palette,
  maxLines = Infinity,
): { lines: string[]; left: number } {
  const all = splitPatch(bytes).flatMap((file) => [
    ...headLines(file).map(paint.bold),
    ...(isBinaryPatch(file) ? file.body.slice(0, 1) : file.body).map((line) => bodyLine(line, paint)),
  ])
  if (cut) all.push(safeLine(`[cut here] ${cut.message}`))
  return { lines: all.slice(0, maxLines), left: Math.max(0, all.length - maxLines) }
}

/** git's own quotes leave spaces at the end, Unicode forms and bytes that are no UTF-8 as they are. */
function headLines(file: PatchFile): string[] {
  if (file.head.length === 0) return []
  const { before, after } = patchPaths(file)
  const prefixed = (prefix: string, name: Buffer) => shownPath(Buffer.concat([Buffer.from(prefix), name]))
  return file.head.map((line) => {
    const start = /^(diff --git|---|\+\+\+|(?:rename|copy) (?:from|to)) /.exec(line)?.[1]
    if (start === undefined || line.endsWith(' /dev/null')) return safeLine(line)
    if (start === 'diff --git') return `${start} ${prefixed('a/', before)} ${prefixed('b/', after)}`
    if (start === '---') return `${start} ${prefixed('a/', before)}`
    if (start === '+++') return `${start} ${prefixed('b/', after)}`
    return `${start} ${shownPath(start.endsWith('from') ? before : after)}`
  })
}

function bodyLine(latin1: string, paint: Palette): string {
  const line = Buffer.from(latin1, 'latin1').toString()
  const text = safeLine(visibleText(line.replace(/\r$/, '')))
  if (line.startsWith('@@')) return paint.cyan(text)
  if (line.startsWith('+')) return paint.green(text)
  return line.startsWith('-') ? paint.red(text) : text
}
