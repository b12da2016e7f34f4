import { statSync } from 'node:fs'
import { copyFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import { pathBytes, pathKey } from '@tutti/workspace'
import type { IndexState } from './git-state.ts'
import type { RepositoryGit } from './repository-git.ts'

/**
 * The agent's index. A copy is read, so that the agent's own is neither locked nor rewritten.
 *
 * @throws TuttiError when it is damaged.
 */
export async function readIndex(git: RepositoryGit): Promise<IndexState> {
  const copy = join(await git.scratch(), 'index')
  // The lock is that of a git which was killed.
  for (const path of [copy, `${copy}.lock`]) await rm(path, { force: true })
  // A repository in which nothing was ever added has none.
  const own = join(git.gitDir, 'index')
  const stats = statSync(own, { throwIfNoEntry: false })
  // A fifo would keep its reader waiting.
  if (stats && !stats.isFile()) throw new TuttiError('failed_precondition', 'The index is no file.')
  if (stats) await copyFile(own, copy)
  const env = { GIT_INDEX_FILE: copy }
  const modes = new Map<string, string>()
  const unmerged: string[] = []
  const assumeUnchanged: string[] = []
  const skipWorktree: string[] = []
  // In a sparse checkout git passes over the flags of files that are there.
  const list = ['-c', 'core.sparseCheckout=false', 'ls-files', '--stage', '-v', '-z']
  for (const line of entries(await git.reading(list, { env }))) {
    const [, tag = '', entry = '', stage, path = ''] = /^(.) (\d+ [0-9a-f]+ (\d)\t([^]*))$/.exec(line) ?? []
    if (stage === '0') modes.set(path, entry.slice(0, entry.indexOf(' ')))
    else unmerged.push(entry)
    if (/[a-z]/.test(tag)) assumeUnchanged.push(path)
    if (/s/i.test(tag)) skipWorktree.push(path)
  }
  if (unmerged.length > 0) {
    const gone = unmerged.map((entry) => `0 ${'0'.repeat(40)} 0\t${entry.slice(entry.indexOf('\t') + 1)}`)
    await git.reading(['update-index', '-z', '--index-info'], { env, input: joined(gone) })
  }
  const tree = (await git.writing(['write-tree'], { env })).toString().trim()
  const added = [
    'diff-index',
    '--cached',
    '--ita-visible-in-index',
    '--diff-filter=A',
    '--name-only',
    '-z',
    tree,
  ]
  const intentToAdd = entries(await git.writing(added, { env })).map(
    (path) => [modes.get(path) ?? '100644', path] as const,
  )
  const isEmpty = modes.size === intentToAdd.length
  return { ...(!isEmpty && { tree }), unmerged, intentToAdd, assumeUnchanged, skipWorktree }
}

const entries = (output: Buffer): string[] => pathKey(output).split('\0').filter(Boolean)

/** The input of a git command with `-z`. */
export const joined = (keys: readonly string[]): Buffer => pathBytes(keys.map((key) => `${key}\0`).join(''))
