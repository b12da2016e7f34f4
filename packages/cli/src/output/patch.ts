import { isUtf8 } from 'node:buffer'
import type { Palette } from './output.ts'
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
}

export async function collectPatch(pieces: AsyncIterable<PatchPiece>): Promise<Patch> {
  let first: PatchPiece | undefined
  const parts: Uint8Array[] = []
  for await (const piece of pieces) {
    first ??= piece
    parts.push(piece.patch)
  }
  return {
    baseCommit: first?.baseCommit ?? '',
    commit: first?.commit ?? '',
    filesChanged: first?.filesChanged ?? 0,
    bytes: Buffer.concat(parts),
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

/** A patch for a person: coloured by line, what is in the files made safe, at most `maxLines` lines. */
export function renderPatch(
  bytes: Uint8Array,
  paint: Palette,
  maxLines = Infinity,
): { lines: string[]; left: number } {
  const all = new TextDecoder().decode(bytes).split('\n')
  if (all.at(-1) === '') all.pop()
  const lines = all.slice(0, maxLines).map((line) => colorLine(line, paint))
  return { lines, left: Math.max(0, all.length - maxLines) }
}

function colorLine(line: string, paint: Palette): string {
  const text = safeLine(line.replace(/\r$/, ''))
  if (
    /^(diff --git|index |new file|deleted file|similarity|rename|old mode|new mode|--- |\+\+\+ )/.test(line)
  ) {
    return paint.bold(text)
  }
  if (line.startsWith('@@')) return paint.cyan(text)
  if (line.startsWith('+')) return paint.green(text)
  return line.startsWith('-') ? paint.red(text) : text
}
