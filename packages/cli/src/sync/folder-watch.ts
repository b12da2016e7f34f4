import { watch, type FSWatcher } from 'node:fs'
import { join } from 'node:path'
import { pathBytes, pathKey } from '@tutti/workspace'

/** Tells that something may have changed in a folder. It only hastens the next look, which is the truth: where it cannot be had, nothing is lost. */
export interface FolderWatch {
  /** Watches these folders (path keys) and the root, and no others. */
  follow(folders: readonly string[]): void
  close(): void
}

/** Each takes a watch of the kernel, of which a user has some ten thousand. */
const maxFolders = 8192
/** Elsewhere Node would watch each folder by itself too, and throws where nobody can catch it when one becomes a file. */
const watchesTrees = process.platform === 'darwin' || process.platform === 'win32'

/** @param changed called for every event, also for what is no change */
export function watchFolder(root: string, changed: () => void): FolderWatch {
  const watchers = new Map<string, FSWatcher>()

  function add(folder: string): void {
    const path = folder === '' ? root : Buffer.concat([Buffer.from(join(root, '/')), pathBytes(folder)])
    const options = { recursive: watchesTrees, persistent: false, encoding: 'buffer' } as const
    const watcher = watch(path, options, (_type, name) => {
      const key = name ? pathKey(name) : ''
      if (folder === '' && /^\.(tutti|git)([/\\]|$)/.test(key)) return
      forget(folder === '' ? key : `${folder}/${key}`)
      changed()
    })
    watchers.set(folder, watcher)
    watcher.on('error', () => drop(folder))
  }
  /** What is watched may have been moved away, and something else be there: the next look says what. */
  function forget(folder: string): void {
    if (folder === '' || !watchers.has(folder)) return
    for (const key of watchers.keys()) if (key === folder || key.startsWith(`${folder}/`)) drop(key)
  }
  function drop(folder: string): void {
    watchers.get(folder)?.close()
    watchers.delete(folder)
  }

  function follow(folders: readonly string[]): void {
    const wanted = new Set(watchesTrees || folders.length > maxFolders ? [''] : ['', ...folders])
    for (const folder of watchers.keys()) if (!wanted.has(folder)) drop(folder)
    for (const folder of wanted) {
      if (watchers.has(folder)) continue
      try {
        add(folder)
      } catch (error) {
        // No more watches for this user; any other folder may be gone, which the next look finds.
        if (['ENOSPC', 'EMFILE', 'ENFILE'].includes((error as NodeJS.ErrnoException).code ?? '')) return
      }
    }
  }

  follow([])
  return {
    follow,
    close() {
      for (const folder of watchers.keys()) drop(folder)
    },
  }
}
