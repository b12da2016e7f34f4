import { Agent } from 'node:http'
import type Docker from 'dockerode'
import { orCancelled, TuttiError } from '@tutti/core'
import { engineError } from './engine-error.ts'
import { findEngine, type FindEngineOptions } from './find-engine.ts'

/** A container engine that answered, and what matters of it. */
export interface Engine {
  readonly docker: Docker
  readonly socketPath: string
  readonly kind: 'docker' | 'podman'
  readonly version: string
  /** Its root is an ordinary user of this host. */
  readonly rootless: boolean
}

/** The fields of `/info` that are read; the client's own type has no more than half of them. */
interface EngineInfo {
  readonly OSType?: string
  readonly MemoryLimit?: boolean
  readonly PidsLimit?: boolean
  readonly CpuCfsQuota?: boolean
  readonly SecurityOptions?: readonly string[] | null
}

/** It says what it is in a few milliseconds, unless it hangs. */
const answerLimitMs = 10_000

/**
 * Finds the engine and asks it what it is.
 *
 * @throws TuttiError `unavailable` when none answers; `failed_precondition` for one that does not limit what must be limited.
 */
export async function connectEngine(options: FindEngineOptions): Promise<Engine> {
  const { socketPath } = findEngine(options)
  // Only where containers are used: it takes 35 MB and a moment.
  const { default: Client } = await import('dockerode')
  // No kept connections: an engine that is started again would reset them in the middle of the next call.
  const docker = new Client({ socketPath, agent: new Agent({ keepAlive: false }) } as Docker.DockerOptions)
  const limit = AbortSignal.timeout(answerLimitMs)
  let info: EngineInfo
  let version: Docker.DockerVersion
  try {
    info = (await orCancelled(docker.info(), limit)) as EngineInfo
    version = await orCancelled(docker.version(), limit)
  } catch (thrown) {
    throw engineError(
      limit.aborted ? new Error('no answer within 10 s') : thrown,
      'say what it is',
      socketPath,
    )
  }
  const components = version.Components ?? []
  const missing = missingLimits(info)
  if (missing.length > 0) {
    throw new TuttiError(
      'failed_precondition',
      `The container engine at ${socketPath} cannot limit ${missing.join(' and ')} of a container here. Run it as root, or ` +
        'delegate the cgroup controllers cpu, memory and pids to the user of a rootless one (cgroups v2, systemd).',
      { socket: socketPath },
    )
  }
  const rootless = (info.SecurityOptions ?? []).some((option) => option.split(',').includes('name=rootless'))
  if (rootless && process.getuid?.() === 0) {
    throw new TuttiError(
      'failed_precondition',
      `The container engine at ${socketPath} is an ordinary user's; it cannot read the folders of this worker, which is root. ` +
        'Run the worker as that user, or name the engine of root.',
      { socket: socketPath },
    )
  }
  return {
    docker,
    socketPath,
    kind: components.some(({ Name }) => Name.startsWith('Podman')) ? 'podman' : 'docker',
    version: version.Version,
    rootless,
  }
}

/** An engine only warns where the kernel gives it no means, and starts the container without the limit. */
function missingLimits(info: EngineInfo): string[] {
  const means = { memory: info.MemoryLimit, processes: info.PidsLimit, cpu: info.CpuCfsQuota }
  return Object.entries(means).flatMap(([name, works]) => (works === false ? [name] : []))
}
