import { watch, type FSWatcher } from 'node:fs'
import { pathBytes } from './path-key.ts'

/** One watch for each folder: a watch of a whole tree is made of them too, and throws where nobody can catch it when one becomes a file. */
export interface WatchedFolders {
  /** Watches these (path keys; the root is the empty one), and no others. */
  follow(folders: ReadonlySet<string>): void
  has(folder: string): boolean
  /** Watches it no more, nor what is below it. */
  drop(folder: string): void
}

/** Each takes a watch of the kernel, of which a user has some ten thousand. */
export const maxWatchedFolders = 8192

/** @param happened with the folder, and the name in it where the system tells it; also for what is no change */
export function watchFolders(
  root: string,
  happened: (folder: string, name: Buffer | null) => void,
  recursive = false,
): WatchedFolders {
  const watchers = new Map<string, FSWatcher>()

  function add(folder: string): void {
    const path = folder === '' ? root : Buffer.concat([Buffer.from(`${root}/`), pathBytes(folder)])
    const options = { recursive, encoding: 'buffer', persistent: false } as const
    const watcher = watch(path, options, (_type, name) => happened(folder, name))
    watchers.set(folder, watcher)
    // The folder is gone, or cannot be watched: the next walk finds out.
    watcher.on('error', () => end(folder))
  }
  function end(folder: string): void {
    watchers.get(folder)?.close()
    watchers.delete(folder)
  }

  return {
    follow(folders) {
      for (const folder of watchers.keys()) if (!folders.has(folder)) end(folder)
      for (const folder of folders) {
        if (watchers.has(folder)) continue
        try {
          add(folder)
        } catch (error) {
          // No more watches for this user; any other folder may be gone, which the next walk finds.
          if (['ENOSPC', 'EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '')) return
        }
      }
    },
    has: (folder) => watchers.has(folder),
    drop(folder) {
      for (const key of watchers.keys()) if (key === folder || key.startsWith(`${folder}/`)) end(key)
    },
  }
}
