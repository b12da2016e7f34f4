export {
  createFakeModelServer,
  type FakeDelta,
  type FakeModelAnswer,
  type FakeModelRequest,
  type FakeModelServer,
} from './fake-model-server.ts'
export {
  createLocalAgentHost,
  type LocalAgentHost,
  type LocalExecExit,
  type LocalExecOutput,
  type LocalExecRequest,
} from './local-agent-host.ts'
