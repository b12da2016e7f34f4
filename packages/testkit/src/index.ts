export {
  createLocalAgentHost,
  type LocalAgentHost,
  type LocalExecExit,
  type LocalExecOutput,
  type LocalExecRequest,
} from './local-agent-host.ts'
