import {
  closeSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { foldersOf, pathProblem } from '@tutti/core'
import { changedFile, changePath, pathBytes, pathKey, statTuple, type StatTuple } from '@tutti/workspace'
import { checkedWhole, modeOf } from './apply-change.ts'
import type { HostChange } from './receive-changes.ts'

/** Writes small files where nothing is, in a workspace that nobody else sees yet: half as long as what {@link applyChange} does takes. */
export interface FreshFiles {
  /**
   * @returns the stat that the file had when it was written; undefined when this is for {@link applyChange}, and nothing has changed then
   * @throws what the file system says of it.
   */
  write(change: HostChange): StatTuple | undefined
  /**
   * Somebody else has put something at this path: it is no folder any more, as far as is known. Of a folder above it nothing is forgotten,
   * as changes that are folded (`foldChanges`) put no link in the place of a folder that they write into.
   */
  forget(key: string): void
}

/** What is in the way, or is not there although it was. */
const notFresh = new Set(['EEXIST', 'ENOENT', 'ENOTDIR', 'ELOOP'])

export function createFreshFiles(root: string): FreshFiles {
  const rootKey = pathKey(Buffer.from(`${root}/`))
  const folders = new Set<string>()
  const absolute = (key: string) => pathBytes(rootKey + key)

  /** Whether all folders of a path are there, themselves and not by links. */
  const hasFolders = (key: string): boolean => {
    for (const folder of foldersOf(key)) {
      if (folders.has(folder)) continue
      const stats = lstatSync(absolute(folder), { throwIfNoEntry: false })
      if (stats && !stats.isDirectory()) return false
      if (!stats) mkdirSync(absolute(folder))
      folders.add(folder)
    }
    return true
  }

  return {
    forget(key) {
      folders.delete(key)
    },
    write({ change, content }) {
      const state = changedFile(change)
      if (state?.fileType !== 'file' || !(content instanceof Uint8Array)) return undefined
      if (pathProblem(changePath(change))) return undefined
      const key = pathKey(changePath(change))
      checkedWhole(content, state)
      try {
        return hasFolders(key) ? writeNew(absolute(key), content, modeOf(state)) : undefined
      } catch (error) {
        if (notFresh.has((error as NodeJS.ErrnoException).code ?? '')) return undefined
        throw error
      }
    },
  }
}

function writeNew(path: Buffer, content: Uint8Array, mode: number): StatTuple {
  const file = openSync(path, 'wx', mode)
  try {
    for (let written = 0; written < content.length;) written += writeSync(file, content, written)
    let stats = fstatSync(file, { bigint: true })
    if (Number(stats.mode & 0o777n) !== mode) {
      // The process's umask must not decide.
      fchmodSync(file, mode)
      stats = fstatSync(file, { bigint: true })
    }
    return statTuple(stats)
  } catch (error) {
    unlinkSync(path)
    throw error
  } finally {
    closeSync(file)
  }
}
