export type {
  AgentServer,
  CaptureSink,
  CaptureSummary,
  CapturedChange,
  FileState,
  GitCommit,
  GitStateReport,
  Hydrated,
  HydrateRequest,
  RecordedGitState,
} from './port.ts'
export { buildAgentServer } from './build-agent-server.ts'
export { agentServerMounts, insideMounts, type AgentServerFiles } from './inside-paths.ts'
export { connectAgentServer, type ConnectOptions } from './host/connect-agent-server.ts'
export { startAgentServer, type StartOptions } from './host/start-agent-server.ts'
export {
  createEgressProxy,
  type DeniedEgress,
  type EgressProxy,
  type EgressProxyOptions,
} from './egress/egress-proxy.ts'
export { parseHostRules, type HostRules } from './egress/host-rules.ts'
export { openEgress, removeAbandonedEgress, type Egress } from './egress/open-egress.ts'
