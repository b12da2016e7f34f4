import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathBytes } from '@tutti/workspace'
import { stateFile, tagsFolder, type GitState, type IndexState, type KeptFile } from './git-state.ts'
import { intendToAdd } from './intend-to-add.ts'
import { joined } from './read-index.ts'
import { restoreSubmodules } from './restore-submodules.ts'

/** git in the new work tree. */
export type Git = (args: readonly string[], input?: Uint8Array) => Promise<Buffer>

/**
 * Makes the repository of a new sandbox what that state says: refs, HEAD, stash, index (that of HEAD, when none could be read), and the
 * kept files last, as they change how git works. The objects are there, and the index has the files of the work tree.
 *
 * @returns the commits of HEAD and the branches, and the path keys of submodules that could not be had
 */
export async function restoreRepository(
  git: Git,
  workdir: string,
  commit: string,
): Promise<{ tips: string[]; withoutSubmodules: string[] }> {
  const state = JSON.parse((await git(['cat-file', 'blob', `${commit}:${stateFile}`])).toString()) as GitState
  // Before anything is asked of the history that it ends.
  for (const file of state.files) if (file.path === 'shallow') restoreFile(workdir, file)
  for (const id of state.tags)
    await git(
      ['hash-object', '-t', 'tag', '-w', '--stdin'],
      await git(['cat-file', 'blob', `${commit}:${tagsFolder}/${id}`]),
    )
  const refs = state.refs.map(([name, id]) => `create ${name}\0${id}\0`)
  if (refs.length > 0) await git(['update-ref', '-z', '--stdin'], pathBytes(refs.join('')))
  for (const [name, target] of state.symbolicRefs) await git(['symbolic-ref', text(name), text(target)])
  if ('ref' in state.head) await git(['symbolic-ref', 'HEAD', text(state.head.ref)])
  else await git(['update-ref', '--no-deref', 'HEAD', state.head.commit])
  for (const [id, message] of state.stash.toReversed())
    await git(['stash', 'store', '--message', text(message), id])
  const { index } = state
  const tree = index ? index.tree : headOf(state)
  // To git, no index is an empty one.
  if (tree === undefined) rmSync(join(workdir, '.git', 'index'), { force: true })
  else await git(['read-tree', '-i', '-m', tree])
  if (index) await restoreFlags(git, workdir, index)
  for (const file of state.files) restoreFile(workdir, file)
  const branches = state.refs.filter(([name]) => name.startsWith('refs/heads/')).map(([, id]) => id)
  const tips = 'commit' in state.head ? [state.head.commit, ...branches] : branches
  return { tips, withoutSubmodules: await restoreSubmodules(git, workdir, state) }
}

function headOf({ head, refs }: GitState): string | undefined {
  return 'commit' in head ? head.commit : refs.find(([name]) => name === head.ref)?.[1]
}

function restoreFile(workdir: string, { path, mode, base64 }: KeptFile): void {
  const target = join(workdir, '.git', path)
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, Buffer.from(base64, 'base64'))
  chmodSync(target, mode === '100755' ? 0o755 : 0o644)
}

const text = (key: string): string => pathBytes(key).toString()

async function restoreFlags(git: Git, workdir: string, index: IndexState): Promise<void> {
  const update = async (args: readonly string[], entries: readonly string[]) => {
    if (entries.length > 0) await git(['update-index', '-z', ...args], joined(entries))
  }
  await update(['--index-info'], index.unmerged)
  if (index.intentToAdd.length > 0) await intendToAdd(git, workdir, index.intentToAdd)
  await update(['--assume-unchanged', '--stdin'], index.assumeUnchanged)
  await update(['--skip-worktree', '--stdin'], index.skipWorktree)
}
