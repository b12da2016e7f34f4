import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { TuttiError } from '@tutti/core'
import { pathBytes } from '@tutti/workspace'
import type { FileSkipReason } from '@tutti/protocol'
import type { GitState, KeptFile } from './git-state.ts'
import { diskFull } from '../disk-full.ts'
import { readKeptFiles } from './kept-files.ts'
import { namedObjects, type NamedObjects } from './named-objects.ts'
import { readIndex } from './read-index.ts'
import { readRefs } from './read-refs.ts'
import type { RepositoryGit } from './repository-git.ts'

export interface ReadState {
  readonly state: GitState
  readonly named: NamedObjects
  /** Commits that the agent works on: of HEAD and its branches. */
  readonly tips: readonly string[]
  /** Of HEAD; absent before the first commit. */
  readonly head: string | undefined
  /** What of it could not be read, by path key below the workspace. */
  readonly problems: ReadonlyMap<string, FileSkipReason>
}

/** Of the base commit, as path keys. */
export interface Submodules {
  readonly gitlinks: readonly string[]
  /** What of them is not there: files, and the folders in which they belong. */
  readonly gone: readonly string[]
}

/** @throws TuttiError when HEAD or the refs cannot be read. */
export async function readState(
  git: RepositoryGit,
  { gitlinks, gone }: Submodules,
  signal: AbortSignal,
): Promise<ReadState> {
  const problems = new Map<string, FileSkipReason>()
  const refs = await readRefs(git)
  const index = await readIndex(git).catch((error: unknown) => {
    signal.throwIfAborted()
    // The index is in order: what was recorded of it before is better than nothing.
    if (diskFull(error, git.gitDir)) throw error
    problems.set('.git/index', 'unreadable')
  })
  const { files, tooLarge } = readKeptFiles(git.gitDir)
  for (const path of tooLarge) problems.set(`.git/${path}`, 'too_large')
  const { head } = refs
  const headCommit = 'commit' in head ? head.commit : refs.refs.find(([name]) => name === head.ref)?.[1]
  const unmerged = index?.unmerged.map((entry) => entry.split(' ')[1]!) ?? []
  const named = await namedObjects(git, [
    ...(headCommit === undefined ? [] : [headCommit]),
    ...refs.refs.map(([, id]) => id),
    ...refs.stash.map(([id]) => id),
    ...unmerged,
    ...files.flatMap(idsIn),
  ])
  const has = new Set([...named.commits, ...named.tags.keys(), ...named.others.keys()])
  if (headCommit !== undefined && !has.has(headCommit))
    throw new TuttiError('failed_precondition', 'HEAD names a commit that is not there.')
  // A ref that leads nowhere would keep all others from being made again.
  const whole = refs.refs.filter(([, id]) => has.has(id))
  for (const [name, id] of refs.refs) if (!has.has(id)) problems.set(`.git/${name}`, 'unreadable')
  const stash = refs.stash.filter(([id]) => has.has(id))
  const branches = whole.filter(([name]) => name.startsWith('refs/heads/')).map(([, id]) => id)
  return {
    state: {
      ...refs,
      refs: whole,
      stash,
      tags: [...named.tags.keys()],
      ...(index && { index }),
      files,
      submodules: await readSubmodules(git, gitlinks),
      ...(gone.length > 0 && { gone }),
    },
    named,
    tips: [...new Set([...(headCommit === undefined ? [] : [headCommit]), ...branches])],
    head: headCommit,
    problems,
  }
}

/** Commits, trees and blobs that a merge or a rebase in progress speaks of; in a list of what is to do by as much as tells them apart. */
function idsIn({ path, base64 }: KeptFile): string[] {
  if (/^(?:config|info\/|hooks\/|rr-cache\/)/.test(path)) return []
  const text = Buffer.from(base64, 'base64').toString('latin1')
  const whole = text.match(/\b(?:[0-9a-f]{40}|[0-9a-f]{64})\b/g) ?? []
  if (!/^(?:sequencer|rebase-merge)\/(?:todo|done|git-rebase-todo)/.test(path)) return whole
  return [...whole, ...text.matchAll(/^[a-z]+ (?:-[cC] )?([0-9a-f]{4,63})\b/gm).map(([, id]) => id!)]
}

async function readSubmodules(
  git: RepositoryGit,
  gitlinks: readonly string[],
): Promise<{ path: string; commit: string }[]> {
  const found: { path: string; commit: string }[] = []
  for (const path of gitlinks) {
    const folder = join(dirname(git.gitDir), pathBytes(path).toString())
    if (!existsSync(join(folder, '.git'))) continue
    const answer = await git.inside(folder, ['rev-parse', '--verify', 'HEAD^{commit}']).catch(() => undefined)
    if (answer) found.push({ path, commit: answer.toString().trim() })
  }
  return found
}
