import { TuttiError } from '@tutti/core'
import { checkHash, isHash } from './ref-name.ts'
import type { GitRunner } from './run-git.ts'
import { isTreeMode, type TreeMode } from './tree-mode.ts'

/** One path that differs between two trees; the side that has none is undefined. */
export interface TreeDifference {
  readonly path: Buffer
  readonly before?: TreeEntry
  readonly after?: TreeEntry
}

export interface TreeEntry {
  readonly mode: TreeMode
  readonly oid: string
}

/** All paths in which each of `trees` differs from the first, as raw bytes, renames not followed; one list for each, by one git. */
export async function diffTrees(
  git: GitRunner,
  gitDir: string,
  from: string,
  trees: readonly string[],
  signal: AbortSignal,
): Promise<readonly (readonly TreeDifference[])[]> {
  for (const tree of [from, ...trees]) checkHash(tree, 'tree')
  const output = await git.bytes(
    ['diff-tree', '--stdin', '-r', '-z', '--raw', '--no-abbrev', '--no-renames'],
    { gitDir, signal, input: Buffer.from(trees.map((tree) => `${from} ${tree}\n`).join('')) },
  )
  const all: TreeDifference[][] = []
  const fields = splitZero(output)
  for (let index = 0; index + 1 < fields.length; index += 2) {
    // In front of its first difference stands a line for each pair, also for those before it that are equal.
    const lines = fields[index]!.toString('latin1').split('\n')
    for (const _ of lines.slice(1)) all.push([])
    const [oldMode = '', newMode = '', oldOid = '', newOid = ''] = lines.at(-1)!.slice(1).split(' ')
    all.at(-1)!.push({
      path: fields[index + 1]!,
      ...(oldMode === absent ? {} : { before: toEntry(oldMode, oldOid) }),
      ...(newMode === absent ? {} : { after: toEntry(newMode, newOid) }),
    })
  }
  return trees.map((_, index) => all[index] ?? [])
}

const absent = '000000'

/** git names no other mode in a difference: it takes old ones of files for one of the two. */
function toEntry(mode: string, oid: string): TreeEntry {
  if (!isTreeMode(mode) || !isHash(oid)) {
    throw new TuttiError('internal', 'git diff-tree named what is no entry of a tree.')
  }
  return { mode, oid }
}

function splitZero(bytes: Buffer): readonly Buffer[] {
  const parts: Buffer[] = []
  for (let start = 0, end = bytes.indexOf(0); end !== -1; start = end + 1, end = bytes.indexOf(0, start)) {
    parts.push(bytes.subarray(start, end))
  }
  return parts
}
