export { TuttiError, errorCodes, type ErrorCode, type ErrorDetail } from './errors.ts'
export { cancelledBy, orCancelled, throwIfCancelled } from './cancellation.ts'
export {
  reasons,
  deliveryFailures,
  interruptions,
  type Interruption,
  type Reason,
  type DeliveryFailure,
} from './reasons.ts'
export {
  agentId,
  agentWorkflowId,
  ensembleId,
  ensembleWorkflowId,
  firstTurnId,
  hostTaskQueue,
  isAgentId,
  isBlobId,
  isEnsembleId,
  mirrorRefs,
  sharedTaskQueue,
  uuidV7,
  type AgentId,
  type BlobId,
  type EnsembleId,
  type GrindId,
  type LogId,
} from './ids.ts'
export {
  forcedIdsKey,
  madeAt,
  parseTraceparent,
  spanIdsOf,
  traceparentOf,
  type SpanIds,
} from './trace-context.ts'
export type { Clock } from './clock.ts'
export { systemClock } from './system-clock.ts'
export { createManualClock, type ManualClock } from './manual-clock.ts'
export { ifFound } from './if-found.ts'
export { limits } from './limits.ts'
export { longestTimer } from './longest-timer.ts'
export { mountProblem } from './mount-problem.ts'
export { settings, type Setting, type SettingName } from './config.ts'
export {
  agentStatuses,
  composerStatus,
  composerStatuses,
  type AgentStatus,
  type ComposerStatus,
} from './agent-status.ts'
export {
  agentStateKey,
  agentStateKeys,
  initialAgentState,
  isAtRest,
  statusOfKey,
  type AgentState,
  type AgentStateKey,
  type Turn,
} from './agent-state.ts'
export {
  isRejection,
  reduceAgent,
  turnPosition,
  type AgentCommand,
  type AgentCommandType,
  type AgentInput,
  type Rejection,
} from './agent-reducer.ts'
export {
  ensemblePhases,
  initialEnsembleState,
  isEnsembleEnd,
  reduceEnsemble,
  type EnsembleInput,
  type EnsemblePhase,
  type EnsembleState,
} from './ensemble-status.ts'
export { parseAgentSpec, type AgentSpec } from './agent-spec.ts'
export { parseBrain, type BrainSpec } from './brain-spec.ts'
export { checkOperand, checkPromptFits, wholePrompt } from './prompt-operand.ts'
export type {
  AgentConfig,
  DeliveryPlan,
  EnsembleConfig,
  SandboxLimits,
  SandboxPolicy,
} from './agent-config.ts'
export { isCandidate, passedCheck, type Attempt, type CheckResult } from './attempt.ts'
export {
  crashPointList,
  crashPoints,
  noCrashPoints,
  parseCrashOrder,
  syncCrashPoints,
  type CrashOrder,
  type CrashPoint,
  type CrashPointName,
} from './crash-points.ts'
export { belowAny } from './below-any.ts'
export { foldersOf } from './folders-of.ts'
export { isGitName, pathProblem } from './path-problem.ts'
export { promptTitle } from './prompt-title.ts'
export { checkBranch, checkRefName } from './ref-name.ts'
export { searchAttributes } from './search-attributes.ts'
export { strategyNames, type StrategyName } from './strategy-names.ts'
export { createSingleFlight, type SingleFlight } from './single-flight.ts'
export { hasDeceptive, visibleText } from './visible-text.ts'
