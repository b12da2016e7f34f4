import { lstatSync } from 'node:fs'
import { pathBytes, pathKey, scanTree, statTuple, type ScannedFile } from '@tutti/workspace'
import { runGit } from './git.ts'

/** The agent may have made git wait. In milliseconds. */
const limitMs = 10_000

/**
 * What of the work trees of submodules no remote has, by path key: in one that is checked out, what its git shows as changed or
 * untracked; in one that is not, every file.
 */
export async function submoduleFiles(
  root: string,
  gitlinks: Iterable<string>,
  signal: AbortSignal,
): Promise<Map<string, ScannedFile>> {
  const files = new Map<string, ScannedFile>()
  for (const gitlink of gitlinks) {
    const folder = `${root}/${pathBytes(gitlink).toString()}`
    for (const key of await changedIn(folder, signal)) {
      const path = `${gitlink}/${key}`
      const file = look(Buffer.concat([Buffer.from(`${root}/`), pathBytes(path)]))
      if (file) files.set(path, file)
    }
  }
  return files
}

async function changedIn(folder: string, signal: AbortSignal): Promise<string[]> {
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  if (lstatSync(`${folder}/.git`, { throwIfNoEntry: false })) {
    const options = ['-z', '-uall', '--no-renames', '--ignore-submodules=all']
    const status = await runGit(['-C', folder, 'status', '--porcelain', ...options], {
      cwd: folder,
      signal,
      timeoutMs: limitMs,
    }).catch(() => undefined)
    signal.throwIfAborted()
    if (status) return entries(status)
  }
  // A repository that git cannot read is none.
  return [...(await scanTree(folder, { signal })).files.keys()]
}

const entries = (status: Buffer): string[] =>
  pathKey(status)
    .split('\0')
    .filter(Boolean)
    .map((entry) => entry.slice(3))

function look(path: Buffer): ScannedFile | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  if (stats?.isFile()) return { type: 'file', stat: statTuple(stats) }
  return stats?.isSymbolicLink() ? { type: 'symlink', stat: statTuple(stats) } : undefined
}
