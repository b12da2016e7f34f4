export { createDockerSandboxes, type DockerSandboxesOptions } from './docker-sandboxes.ts'
export { describeDockerSandbox, type DockerSandboxDescription } from './describe-docker-sandbox.ts'
