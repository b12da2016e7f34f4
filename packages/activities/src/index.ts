export type {
  Activities,
  AdmitResult,
  AgentScope,
  CheckOutcome,
  CheckpointResult,
  ChildEnd,
  CombineResult,
  DeliverResult,
  EnsembleScope,
  GatherResult,
  RecordPhase,
  RecordState,
  TurnInput,
  TurnResult,
  WorkflowEvent,
} from './contract.ts'
export { createActivities } from './create-activities.ts'
export type { ActivityDeps, ActivityLog, AgentServers, PreparedServer, TurnWaiting } from './deps.ts'
export { saveAgentState, type SaveAgentState } from './save-agent-state.ts'
export { createSessions, type HostSession, type Sessions } from './sessions.ts'
export { endSession } from './release-sandbox.ts'
