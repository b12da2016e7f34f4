export { checkLog } from './log/check-log.ts'
export { findWhole, isLost } from './log/find-whole.ts'
export {
  changeOfEvent,
  eventPath,
  fileChange,
  fileSync,
  pathFields,
  type EventPath,
} from './log/file-events.ts'
export { isAsLastRead } from './log/is-as-last-read.ts'
export { neededBlobs } from './log/needed-blobs.ts'
export { readOpenCalls, type OpenCall } from './log/open-calls.ts'
export { readEvents, type StoredEvent } from './log/read-events.ts'
export {
  recoverWorkspace,
  type FileSync,
  type RecoveredGitState,
  type RecoveredWorkspace,
} from './log/recover-workspace.ts'
