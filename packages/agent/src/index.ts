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
