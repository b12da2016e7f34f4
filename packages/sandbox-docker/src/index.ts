export {
  createDockerSandboxes,
  type DockerSandboxesOptions,
  type DockerSandboxProvider,
} from './docker-sandboxes.ts'
