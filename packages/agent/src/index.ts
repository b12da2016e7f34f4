export { createCommandAdapter } from './command-adapter.ts'
export type {
  AgentAdapter,
  AgentHost,
  AgentSession,
  HostExecExit,
  HostExecOutput,
  HostExecRequest,
  OpenSession,
  TurnOutcome,
  TurnRequest,
} from './port.ts'
