import type { GitRunner } from './run-git.ts'

/** One path that differs between two trees; the side that has none is undefined. */
export interface TreeDifference {
  readonly path: Buffer
  readonly before?: TreeEntry
  readonly after?: TreeEntry
}

export interface TreeEntry {
  readonly mode: string
  readonly oid: string
}

/** All paths that differ, as raw bytes, renames not followed. */
export async function diffTrees(
  git: GitRunner,
  gitDir: string,
  from: string,
  to: string,
  signal: AbortSignal,
): Promise<readonly TreeDifference[]> {
  const output = await git.bytes(
    ['diff-tree', '-r', '-z', '--raw', '--no-abbrev', '--no-renames', '--end-of-options', from, to, '--'],
    { gitDir, signal },
  )
  const fields = splitZero(output)
  const differences: TreeDifference[] = []
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [oldMode = '', newMode = '', oldOid = '', newOid = ''] = fields[index]!.toString('latin1')
      .slice(1)
      .split(' ')
    differences.push({
      path: fields[index + 1]!,
      ...(oldMode === absent ? {} : { before: { mode: oldMode, oid: oldOid } }),
      ...(newMode === absent ? {} : { after: { mode: newMode, oid: newOid } }),
    })
  }
  return differences
}

const absent = '000000'

function splitZero(bytes: Buffer): readonly Buffer[] {
  const parts: Buffer[] = []
  for (let start = 0, end = bytes.indexOf(0); end !== -1; start = end + 1, end = bytes.indexOf(0, start)) {
    parts.push(bytes.subarray(start, end))
  }
  return parts
}
