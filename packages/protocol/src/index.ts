export type {
  ChildView,
  CommandEvent,
  EnsembleEvent,
  FileSkipReason,
  InteractionEvent,
  RunEvent,
  RunEventType,
  SessionEvent,
  ShellOutput,
  TurnEvent,
  WorkspaceEvent,
} from './run-event.ts'
export type { TaskEvent } from './task-event.ts'
