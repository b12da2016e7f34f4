export { changeOfEvent, eventPath, fileChange, pathFields, type EventPath } from './log/file-events.ts'
export { readOpenCalls, type OpenCall } from './log/open-calls.ts'
export { readEvents, type StoredEvent } from './log/read-events.ts'
export { recoverWorkspace, type RecoveredGitState, type RecoveredWorkspace } from './log/recover-workspace.ts'
