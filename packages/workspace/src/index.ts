export type { CapturedChange, EmptyFolderState, FileState, PathState } from './file-state.ts'
export { pathBytes, pathKey } from './path-key.ts'
export { manifestDigest, manifestDigestByKey } from './manifest-digest.ts'
export { changedFile, changePath, isEmptyFolder, isInNoCommit } from './file-state.ts'
export { foldChanges, untilConflict } from './fold-changes.ts'
export {
  holdsNothing,
  isFolder,
  scanFile,
  scanTree,
  type ScanOptions,
  type ScannedFile,
  type ScannedTree,
} from './scan-tree.ts'
export { maxWatchedFolders, watchFolders, type WatchedFolders } from './watch-folders.ts'
export { fileTooLarge, readStableFile, readStableLink, type StableContent } from './read-stable.ts'
export { isRacy, sameStat, statTuple, type StatTuple } from './stat-tuple.ts'
