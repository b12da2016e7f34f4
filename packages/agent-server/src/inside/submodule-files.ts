import { lstatSync } from 'node:fs'
import { belowAny, foldersOf, TuttiError } from '@tutti/core'
import { pathBytes, pathKey, scanTree, type ScannedFile, type ScannedTree } from '@tutti/workspace'
import { emptyFolders } from './empty-folders.ts'
import { runGit } from './git.ts'
import { onlyAt } from './repository/repository-git.ts'
import { divideIgnored, leavesFolder, type IgnoredPolicy } from './ignored-policy.ts'

/** The agent may have made git wait. In milliseconds. */
const limitMs = 10_000

/** Submodules of the base commit, by path key, with the commit that it has for each. */
export type Gitlinks = ReadonlyMap<string, string>

/** Path keys are those of the workspace. */
export interface InSubmodules {
  /** What differs from what the base commit has, whether it is committed there or not: its remote may have none of it. */
  readonly files: ReadonlyMap<string, ScannedFile>
  readonly empty: readonly string[]
  /** What their HEAD has and is not there, and the folders in which they belong. */
  readonly gone: readonly string[]
  /** Ignored files that are not kept, and folders with a slash behind them. */
  readonly leftOut: readonly string[]
  /** Repositories that no recovery makes again: below a submodule, or one that git cannot read. */
  readonly repositories: readonly string[]
  readonly special: readonly string[]
  readonly unsafe: readonly string[]
  readonly unreadable: readonly string[]
}

/**
 * What of the work trees of submodules is the agent's. Of one that is not checked out, everything.
 *
 * @param known what was found before, as `knownGone`; it stays where nobody can look, or git does not answer in time
 */
export async function submoduleFiles(
  root: string,
  gitlinks: Gitlinks,
  known: ReadonlyMap<string, { readonly mode: string }>,
  knownGone: readonly string[],
  policy: IgnoredPolicy,
  signal: AbortSignal,
): Promise<InSubmodules> {
  const all = {
    files: new Map<string, ScannedFile>(),
    empty: [] as string[],
    gone: [] as string[],
    leftOut: [] as string[],
    repositories: [] as string[],
    special: [] as string[],
    unsafe: [] as string[],
    unreadable: [] as string[],
  }
  for (const [gitlink, commit] of gitlinks) {
    const folder = `${root}/${pathBytes(gitlink).toString()}`
    const found = await scanFolder(folder, signal)
    if (found === 'none') {
      all.gone.push(...absent(root, gitlink))
      continue
    }
    if (found === 'unreadable') {
      all.unreadable.push(gitlink)
      all.gone.push(...knownGone.filter((key) => key.startsWith(`${gitlink}/`)))
      continue
    }
    const { tree, hasGit } = found
    const answer = hasGit ? await askGit(folder, commit, signal) : none
    const below = (keys: Iterable<string>) => Array.from(keys, (key) => `${gitlink}/${key}`)
    const isKnown = (key: string) => known.has(`${gitlink}/${key}`)
    const isOwn = answer === late ? isKnown : (key: string) => !answer.unchanged.has(key)
    const { left, folders } = answer === late ? noneLeft : divide(tree, answer.ignored, isKnown, policy)
    for (const [key, file] of tree.files)
      if (isOwn(key) && !left.has(key)) all.files.set(`${gitlink}/${key}`, file)
    const isInLeft = belowAny(new Set(folders))
    const isShown = (key: string) => !isInLeft(key)
    all.leftOut.push(...below([...left].filter(isShown)), ...below(folders).map((key) => `${key}/`))
    const holds = [...tree.files.keys(), ...tree.unreadable]
    all.empty.push(...below(emptyFolders(tree.folders, holds, []).difference(new Set(folders))))
    if (answer === late) all.gone.push(...knownGone.filter((key) => key.startsWith(`${gitlink}/`)))
    else all.gone.push(...below(answer.has.filter((key) => !isIn(tree, key))))
    if (answer === unreadable) all.repositories.push(`${gitlink}/.git`)
    all.repositories.push(...below(tree.repositories.filter(isShown)))
    all.special.push(...below(tree.special.filter(isShown)))
    all.unsafe.push(...below(tree.unsafe))
    all.unreadable.push(...below(tree.unreadable))
  }
  return all
}

interface GitAnswer {
  /** What its HEAD has, but for submodules. */
  readonly has: readonly string[]
  readonly unchanged: ReadonlySet<string>
  readonly ignored: ReadonlySet<string>
}

const none: GitAnswer = { has: [], unchanged: new Set(), ignored: new Set() }
/** A repository that git cannot read is none. */
const unreadable: GitAnswer = { ...none }
const late = 'late'
const noneLeft = { left: new Set<string>(), folders: [] }

async function askGit(folder: string, commit: string, signal: AbortSignal): Promise<GitAnswer | typeof late> {
  const git = async (...args: string[]) =>
    entries(
      await runGit(['-C', folder, ...args], { cwd: folder, signal, timeoutMs: limitMs, env: onlyAt(folder) }),
    )
  const options = ['--name-only', '-z', '--no-renames', '--no-ext-diff', '--ignore-submodules=all']
  try {
    const filesOf = async (revision: string) =>
      (await git('ls-tree', '-r', '-z', revision))
        .filter((line) => !line.startsWith('160000 '))
        .map((line) => line.slice(line.indexOf('\t') + 1))
    const has = await filesOf('HEAD')
    const unchanged = new Set(await filesOf(commit))
    for (const key of await git('diff', ...options, commit, '--')) unchanged.delete(key)
    const ignored = new Set(await git('ls-files', '-o', '-i', '-z', '--exclude-standard'))
    return { has, unchanged, ignored }
  } catch (error) {
    signal.throwIfAborted()
    return error instanceof TuttiError && error.code === 'deadline_exceeded' ? late : unreadable
  }
}

/** Which of the ignored files are left, and which folders as a whole. */
function divide(
  tree: ScannedTree,
  ignored: GitAnswer['ignored'],
  wasKept: (key: string) => boolean,
  policy: IgnoredPolicy,
): { left: ReadonlySet<string>; folders: string[] } {
  const left = new Set<string>()
  const folders = new Set<string>()
  const candidates = new Map<string, bigint>()
  for (const key of ignored) {
    const file = tree.files.get(key)
    if (!file) continue
    const folder = foldersOf(key).find((name) => leavesFolder(name, policy))
    if (folder === undefined) candidates.set(key, file.stat.size)
    else {
      left.add(key)
      folders.add(folder)
    }
  }
  const kept = divideIgnored(candidates, wasKept, policy)
  for (const key of candidates.keys()) if (!kept.has(key)) left.add(key)
  return { left, folders: [...folders] }
}

/** Which of this folder and those that it lies in are not there. */
function absent(root: string, gitlink: string): string[] {
  return [...foldersOf(gitlink), gitlink].filter((key) => {
    try {
      return lstatSync(`${root}/${pathBytes(key).toString()}`, { throwIfNoEntry: false }) === undefined
    } catch {
      return false
    }
  })
}

/** What the workspace has in a submodule's place may be no folder, or one that the agent has shut. */
async function scanFolder(
  folder: string,
  signal: AbortSignal,
): Promise<{ tree: ScannedTree; hasGit: boolean } | 'none' | 'unreadable'> {
  const at = (path: string) => lstatSync(path, { throwIfNoEntry: false })
  try {
    if (at(folder)?.isDirectory() !== true) return 'none'
    return { tree: await scanTree(folder, { signal }), hasGit: at(`${folder}/.git`) !== undefined }
  } catch {
    signal.throwIfAborted()
    return 'unreadable'
  }
}

/** Also what could not be looked at. */
function isIn(tree: ScannedTree, key: string): boolean {
  if (tree.files.has(key)) return true
  return tree.unreadable.some((other) => key === other || key.startsWith(`${other}/`))
}

const entries = (listing: Buffer): string[] => pathKey(listing).split('\0').filter(Boolean)
