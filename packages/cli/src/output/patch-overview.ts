import stringWidth from 'fast-string-width'
import type { Palette } from './output.ts'
import { patchPaths } from './patch-paths.ts'
import { renderPatch } from './patch.ts'
import { shownPath } from './shown-path.ts'
import { isBinaryPatch, splitPatch, type PatchFile } from './split-patch.ts'
import { padEnd, truncate } from './table.ts'

export interface PatchOverview {
  readonly paint: Palette
  readonly width: number
  /** Files in the list, at most. */
  readonly files: number
  /** Lines of the patch, at most; shared among the files, so that a long one does not hide the others. */
  readonly lines: number
}

interface ShownFile {
  readonly path: string
  readonly change: 'new' | 'deleted' | 'renamed' | 'binary' | ''
  readonly added: number
  readonly removed: number
  /** Its hunks; none for a binary file, whose patch nobody can read. */
  readonly hunks: readonly string[]
}

/** What a patch changes: every file with its counts, like `git diff --stat`, then some lines of each one's hunks. */
export function patchOverview(
  bytes: Uint8Array,
  overview: PatchOverview,
): { readonly list: string[]; readonly diff: string[] } {
  const files = splitPatch(bytes)
    .filter(({ head }) => head.length > 0)
    .map(readFile)
  return { list: fileList(files, overview), diff: fileDiffs(files, overview) }
}

function readFile(file: PatchFile): ShownFile {
  const { head, body } = file
  const has = (start: string) => head.some((line) => line.startsWith(start))
  const isBinary = isBinaryPatch(file)
  const count = (mark: string) => (isBinary ? 0 : body.filter((line) => line.startsWith(mark)).length)
  return {
    path: shownPath(patchPaths(file).after),
    change: has('new file')
      ? 'new'
      : has('deleted file')
        ? 'deleted'
        : has('rename to')
          ? 'renamed'
          : isBinary
            ? 'binary'
            : '',
    added: count('+'),
    removed: count('-'),
    hunks: isBinary ? [] : body,
  }
}

function fileList(files: readonly ShownFile[], { paint, width, files: most }: PatchOverview): string[] {
  const shown = files.slice(0, most)
  const cells = shown.map((file) => [
    file.added > 0 ? `+${file.added}` : '',
    file.removed > 0 ? `-${file.removed}` : '',
  ])
  const wide = (column: number) => Math.max(0, ...cells.map((row) => row[column]!.length))
  const counts = wide(0) + wide(1) + 2
  const names = shown.map(({ path }) => truncate(path, Math.max(20, width - counts - 12)))
  const nameWidth = Math.max(0, ...names.map((name) => stringWidth(name)))
  const rows = shown.map(({ change }, index) => {
    const [added = '', removed = ''] = cells[index]!
    const name = padEnd(names[index]!, nameWidth)
    return `${name}  ${paint.green(padEnd(added, wide(0)))} ${paint.red(padEnd(removed, wide(1)))}  ${change}`.trimEnd()
  })
  return [...rows, ...moreFiles(files.length - shown.length, paint)]
}

function fileDiffs(all: readonly ShownFile[], { paint, lines: most }: PatchOverview): string[] {
  const files = all.filter(({ hunks }) => hunks.length > 0)
  const shown = files.slice(0, Math.max(1, Math.floor(most / leastLines)))
  const shares = share(
    most - shown.length,
    shown.map(({ hunks }) => hunks.length),
  )
  const diff = shown.flatMap(({ hunks, path }, index) => {
    const { lines, left } = renderPatch(
      { bytes: Buffer.from(hunks.join('\n'), 'latin1') },
      paint,
      shares[index],
    )
    const rest = left > 0 ? [paint.dim(`… ${left} more line${left === 1 ? '' : 's'} of ${path}`)] : []
    return [paint.bold(path), ...lines, ...rest]
  })
  return [...diff, ...moreFiles(files.length - shown.length, paint)]
}

/** Of one file: its name, where in it, and some lines. */
const leastLines = 6

const moreFiles = (count: number, paint: Palette): string[] =>
  count > 0 ? [paint.dim(`… and ${count} more file${count === 1 ? '' : 's'}`)] : []

/** Shares a number among wants: what a small one does not need goes to the others. */
function share(total: number, wants: readonly number[]): number[] {
  const given = wants.map(() => 0)
  let left = total
  let open = wants.map((_want, index) => index)
  while (left > 0 && open.length > 0) {
    const each = Math.max(1, Math.floor(left / open.length))
    for (const index of open) {
      const more = Math.min(each, wants[index]! - given[index]!, left)
      given[index]! += more
      left -= more
    }
    open = open.filter((index) => given[index]! < wants[index]!)
  }
  return given
}
