import { lstatSync } from 'node:fs'
import { TuttiError } from '@tutti/core'
import { pathBytes, pathKey, scanTree, statTuple, type ScannedFile } from '@tutti/workspace'
import { runGit } from './git.ts'

/** The agent may have made git wait. In milliseconds. */
const limitMs = 10_000

/** Submodules of the base commit, by path key, with the commit that it has for each. */
export type Gitlinks = ReadonlyMap<string, string>

/**
 * What of the work trees of submodules differs from what the base commit has, by path key, whether it is committed there or not: its remote
 * may have none of it. Of one that is not checked out, every file.
 *
 * @param known what was found before; it stays where git does not answer in time
 */
export async function submoduleFiles(
  root: string,
  gitlinks: Gitlinks,
  known: Iterable<string>,
  signal: AbortSignal,
): Promise<Map<string, ScannedFile>> {
  const files = new Map<string, ScannedFile>()
  for (const [gitlink, commit] of gitlinks) {
    const folder = `${root}/${pathBytes(gitlink).toString()}`
    const below = `${gitlink}/`
    const before = () =>
      [...known].filter((key) => key.startsWith(below)).map((key) => key.slice(below.length))
    for (const key of (await changedIn(folder, commit, signal)) ?? before()) {
      const path = below + key
      const file = look(Buffer.concat([Buffer.from(`${root}/`), pathBytes(path)]))
      if (file) files.set(path, file)
    }
  }
  return files
}

/** Undefined when git does not answer in time. */
async function changedIn(folder: string, commit: string, signal: AbortSignal): Promise<string[] | undefined> {
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  if (lstatSync(`${folder}/.git`, { throwIfNoEntry: false })) {
    const git = (args: readonly string[]) =>
      runGit(['-C', folder, ...args], { cwd: folder, signal, timeoutMs: limitMs })
    const options = ['--name-only', '-z', '--no-renames', '--no-ext-diff', '--ignore-submodules=all']
    try {
      const changed = await git(['diff', ...options, commit, '--'])
      const untracked = await git(['ls-files', '-o', '-z', '--exclude-standard'])
      return [...new Set([...entries(changed), ...entries(untracked)])]
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof TuttiError && error.code === 'deadline_exceeded') return undefined
    }
  }
  // A repository that git cannot read is none.
  return [...(await scanTree(folder, { signal })).files.keys()]
}

const entries = (listing: Buffer): string[] => pathKey(listing).split('\0').filter(Boolean)

function look(path: Buffer): ScannedFile | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  if (stats?.isFile()) return { type: 'file', stat: statTuple(stats) }
  return stats?.isSymbolicLink() ? { type: 'symlink', stat: statTuple(stats) } : undefined
}
