export {
  agentStateQuery,
  agentUpdates,
  ensembleUpdates,
  releaseSandboxSignal,
  turnWaitingSignal,
  workflowTypes,
  type AgentTimings,
  type ChildInput,
  type CloudAgentInput,
  type CloudAgentResult,
  type CommandAnswer,
  type CommandRequest,
  type ParallelAgentsInput,
  type ParallelAgentsResult,
} from './contract.ts'
export { searchAttributeKeys } from './search-attribute-keys.ts'
