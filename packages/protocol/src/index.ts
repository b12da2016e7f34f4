export type {
  ChangedPath,
  ChildView,
  CommandEvent,
  DeliveryEvent,
  EnsembleEvent,
  FileSkipReason,
  InteractionEvent,
  RecoveryEvent,
  RecoveryStep,
  RunEvent,
  RunEventType,
  SessionEvent,
  ShellOutput,
  TurnEvent,
  WorkspaceEvent,
} from './run-event.ts'
export type { TaskEvent } from './task-event.ts'
export type {
  AttemptResult,
  ConflictReport,
  EnsembleResult,
  FailureReport,
  MergeReport,
  PullRequestResult,
  SynthesisResult,
} from './ensemble-result.ts'
export { decodeRunEvent, encodeRunEvent, type EventBody } from './run-event-body.ts'
export { decodeOffset, encodeOffset } from './offset.ts'
export { isDelta, joinDeltas } from './coalesce.ts'
