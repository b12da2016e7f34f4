import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { noCrashPoints, pathProblem, type CrashPoint } from '@tutti/core'
import { pathBytes, sameStat, statTuple } from '@tutti/workspace'
import type { LocalPath, LocalTree } from './local-tree.ts'
import type { PathState } from './path-state.ts'
import { stateFolder } from './sync-state.ts'

/** Why a path of the agent's is not in the folder; undefined when it is. */
export type Blocked = string | undefined

/** Writes what the agent has into the user's folder: whole or not at all, never outside of it, and never over what was not looked at. */
export interface LocalWriter {
  /** Why this path can never be there. */
  problem(key: string): Blocked
  /** Brings the content into a file of ours beside the folder's own. */
  prepare(content: AsyncIterable<Uint8Array>): Promise<string>
  /** Puts what was prepared in the place of what was seen there; a link's content is its target. */
  place(
    key: string,
    state: NonNullable<PathState>,
    prepared: string | Uint8Array,
    seen: LocalPath,
  ): Promise<Blocked>
  /** Throws away what was prepared and is not wanted; nothing for what was placed. */
  discard(prepared: string | Uint8Array): void
  remove(key: string, seen: LocalPath): Promise<Blocked>
}

const toRename = 'rename it where it comes from'
/** Nothing that has to be told while the sync stays: the next look finds what it has become. */
export const changedMeanwhile = 'it was changed at this moment; run the sync again'

export function createLocalWriter(
  tree: LocalTree,
  temporaries: string,
  crashPoint: CrashPoint = noCrashPoints,
): LocalWriter {
  /** Makes the folders of a path; what is no folder in their place is the user's, or goes first. */
  function makeFolders(key: string): Blocked {
    const blocked = tree.blockedBy(key)
    if (blocked !== undefined)
      return `${pathBytes(blocked).toString()} is no folder here; rename or remove that, and the agent's comes`
    const parent = key.lastIndexOf('/')
    if (parent > 0) mkdirSync(tree.path(key.slice(0, parent)), { recursive: true })
    return undefined
  }

  /** What was looked at is still there, and nothing else. */
  function isAsSeen(key: string, { state, stat }: LocalPath): boolean {
    const stats = lstatSync(tree.path(key), { bigint: true, throwIfNoEntry: false })
    // A folder goes only when nothing is in it: no look has to say so.
    if (state?.mode === '040000') return stats?.isDirectory() === true
    return stats && stat ? sameStat(statTuple(stats), stat) : !stats && !stat
  }

  function place(
    key: string,
    state: NonNullable<PathState>,
    prepared: string | Uint8Array,
    seen: LocalPath,
  ): Blocked {
    const problem = makeFolders(key)
    if (problem) return problem
    const target = tree.path(key)
    const stats = lstatSync(target, { throwIfNoEntry: false })
    if (state.mode === '040000') {
      if (stats && !stats.isDirectory() && !isAsSeen(key, seen)) return changedMeanwhile
      if (stats && !stats.isDirectory()) unlinkSync(target)
      mkdirSync(target, { recursive: true })
      return undefined
    }
    let temporary = prepared
    if (typeof temporary !== 'string') {
      const link = join(temporaries, randomUUID())
      symlinkSync(Buffer.from(temporary), link)
      temporary = link
    } else chmodSync(temporary, state.mode === '100755' ? 0o755 : 0o644)
    if (stats?.isDirectory()) {
      if (seen.state?.mode !== '040000')
        return "there is a folder here that is not empty; move away what is in it, and the agent's comes"
      // Fails when something is in it by now.
      rmdirSync(target)
    } else if (!isAsSeen(key, seen)) return changedMeanwhile
    renameSync(temporary, target)
    return undefined
  }

  function remove(key: string, seen: LocalPath): Blocked {
    if (tree.blockedBy(key) !== undefined || !isAsSeen(key, seen)) return changedMeanwhile
    const target = tree.path(key)
    if (seen.state?.mode === '040000') rmdirSync(target)
    else if (seen.stat) unlinkSync(target)
    // Folders that are left with nothing: the agent has an empty one only where it says so.
    for (let slash = key.lastIndexOf('/'); slash > 0; slash = key.lastIndexOf('/', slash - 1)) {
      try {
        rmdirSync(tree.path(key.slice(0, slash)))
      } catch {
        break
      }
    }
    return undefined
  }

  const discard = (prepared: string | Uint8Array) => {
    if (typeof prepared === 'string') rmSync(prepared, { force: true })
  }

  /** What a file system refuses stays away, and is told. */
  const orBlocked = (work: () => Blocked): Blocked => {
    try {
      return work()
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === undefined || code === 'ENOSPC') throw error
      return `the file system refuses it (${code}); make room for it here, or sync into a folder of another disk`
    }
  }

  return {
    problem(key) {
      if (key.split('/', 1)[0]!.toLowerCase() === stateFolder)
        return `the name is taken by the state of the sync; ${toRename}`
      const problem = pathProblem(pathBytes(key))
      return problem && `${problem}; ${toRename}`
    },
    async prepare(content) {
      const path = join(temporaries, randomUUID())
      try {
        await crashPoint('sync.temporary', async () => {
          const file = await open(path, 'wx', 0o600)
          try {
            for await (const chunk of content) await file.writeFile(chunk)
          } finally {
            await file.close()
          }
        })
        return path
      } catch (error) {
        rmSync(path, { force: true })
        throw error
      }
    },
    async place(key, state, prepared, seen) {
      try {
        return await crashPoint('sync.place', async () => orBlocked(() => place(key, state, prepared, seen)))
      } finally {
        discard(prepared)
      }
    },
    discard,
    remove: (key, seen) => crashPoint('sync.remove', async () => orBlocked(() => remove(key, seen))),
  }
}
