import { maxWatchedFolders, pathKey, watchFolders } from '@tutti/workspace'

/** Tells that something may have changed in a folder. It only hastens the next look, which is the truth: where it cannot be had, nothing is lost. */
export interface FolderWatch {
  /** Watches these folders (path keys) and the root, and no others. */
  follow(folders: readonly string[]): void
  close(): void
}

/** Elsewhere Node would watch each folder by itself too, and throws where nobody can catch it when one becomes a file. */
const watchesTrees = process.platform === 'darwin' || process.platform === 'win32'

/** @param changed called for every event, also for what is no change */
export function watchFolder(root: string, changed: () => void): FolderWatch {
  const watched = watchFolders(
    root,
    (folder, name) => {
      const key = name ? pathKey(name) : ''
      if (folder === '' && /^\.(tutti|git)([/\\]|$)/.test(key)) return
      const changedAt = folder === '' ? key : `${folder}/${key}`
      // What is watched may have been moved away, and something else be there: the next look says what.
      if (changedAt !== '' && watched.has(changedAt)) watched.drop(changedAt)
      changed()
    },
    watchesTrees,
  )
  const follow = (folders: readonly string[]) =>
    watched.follow(new Set(watchesTrees || folders.length > maxWatchedFolders ? [''] : ['', ...folders]))
  follow([])
  return { follow, close: () => watched.follow(new Set()) }
}
