export { bundleCli } from './bundle-cli.ts'
export { cliMain } from './cli-main.ts'
export {
  createFakeModelServer,
  type FakeDelta,
  type FakeModelAnswer,
  type FakeModelRequest,
  type FakeModelServer,
} from './fake-model-server.ts'
export { importTestImage, testImages, type TestImage } from './container-images.ts'
export {
  createLocalAgentHost,
  type LocalAgentHost,
  type LocalExecExit,
  type LocalExecOutput,
  type LocalExecRequest,
} from './local-agent-host.ts'
export { startPodman, type PodmanEngine } from './podman.ts'
export { createTestRepository, type TestRepository } from './test-repository.ts'
export {
  createTuttiStack,
  type CliProcess,
  type CliRun,
  type ReadyLine,
  type RoleProcess,
  type TuttiStack,
  type TuttiStackOptions,
} from './tutti-stack.ts'
export { createTestCertificates, type TestCertificate } from './test-certificates.ts'
export { startTlsProxy, type TlsProxy } from './tls-proxy.ts'
