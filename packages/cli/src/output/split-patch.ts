/** What a patch says of one file. Lines are the patch's bytes as latin1, since neither names nor contents need be UTF-8. */
export interface PatchFile {
  /** From `diff --git` to the first hunk; none when the patch is hunks alone. */
  readonly head: readonly string[]
  /** The hunks; of a binary file `GIT binary patch`, and what nobody can read. */
  readonly body: readonly string[]
}

/** A file's part starts with `diff --git`: no line of a hunk can, since each has a mark in front. */
export function splitPatch(bytes: Uint8Array): PatchFile[] {
  const lines = Buffer.from(bytes).toString('latin1').split('\n')
  if (lines.at(-1) === '') lines.pop()
  const starts = lines.flatMap((line, index) => (line.startsWith('diff --git ') ? [index] : []))
  if (starts[0] !== 0) starts.unshift(0)
  return starts.map((start, index) => headAndBody(lines.slice(start, starts[index + 1])))
}

function headAndBody(lines: readonly string[]): PatchFile {
  if (!lines[0]?.startsWith('diff --git ')) return { head: [], body: lines }
  const hunk = lines.findIndex((line) => line.startsWith('@@ ') || line === binaryMark)
  return hunk === -1 ? { head: lines, body: [] } : { head: lines.slice(0, hunk), body: lines.slice(hunk) }
}

const binaryMark = 'GIT binary patch'

export const isBinaryPatch = ({ head, body }: PatchFile): boolean =>
  body[0] === binaryMark || head.some((line) => line.startsWith('Binary files '))
