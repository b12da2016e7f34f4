export { bundleCli } from './bundle-cli.ts'
export { cliMain } from './cli-main.ts'
export { createFaultProxy, type FaultProxy, type ProxiedRequest } from './fault-proxy.ts'
export type { Fault } from './fault.ts'
export {
  createFakeModelServer,
  type FakeDelta,
  type FakeModelAnswer,
  type FakeModelRequest,
  type FakeModelServer,
} from './fake-model-server.ts'
export { importTestImage, testImages, type TestImage } from './container-images.ts'
export { hostilePaths } from './hostile-paths.ts'
export {
  createLocalAgentHost,
  type LocalAgentHost,
  type LocalExecExit,
  type LocalExecOutput,
  type LocalExecRequest,
} from './local-agent-host.ts'
export { createS3Server, type S3Server } from './s3-server.ts'
export type { S3ServerKind } from './s3-server-commands.ts'
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
