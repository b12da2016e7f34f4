import { TuttiError, type Clock } from '@tutti/core'
import { createLocalSandboxes, limitLife, type HostSandboxProvider } from '@tutti/sandbox'
import type { WorkerConfig } from './worker-config.ts'

interface SandboxOptions {
  readonly sandboxRoot: string
  readonly dataDir: string
  readonly config: WorkerConfig
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

/**
 * The sandboxes that the settings choose.
 *
 * @throws TuttiError `invalid_argument` for containers without an image. An engine that does not answer is no reason to end: it may
 *   by the first sandbox.
 */
export async function openSandboxes(options: SandboxOptions): Promise<HostSandboxProvider> {
  const sandboxes = await openEndless(options)
  const lifeMs = options.config['sandbox.max_life']
  return lifeMs === 0 ? sandboxes : limitLife(sandboxes, lifeMs, options.clock)
}

async function openEndless(options: SandboxOptions): Promise<HostSandboxProvider> {
  const { config, env, clock } = options
  const common = {
    root: options.sandboxRoot,
    dataDir: options.dataDir,
    nodePath: process.execPath,
    stopGraceMs: config['stop.grace'],
    clock,
  }
  if (config['sandboxes.provider'] === 'local') return createLocalSandboxes(common)
  const image = config['sandboxes.image']
  if (image === '') {
    throw new TuttiError(
      'invalid_argument',
      'sandboxes.provider is docker, and no image says what containers are made of. Name one: TUTTI_SANDBOXES_IMAGE=NAME, or sandboxes.image in a file.',
      { setting: 'sandboxes.image' },
    )
  }
  // Most workers need none of it.
  const { createDockerSandboxes } = await import('@tutti/sandbox-docker')
  const socketPath = config['sandboxes.engine']
  const sandboxes = createDockerSandboxes({
    ...common,
    image,
    pull: config['sandboxes.pull'],
    env,
    ...(socketPath !== '' && { socketPath }),
  })
  const local = createLocalSandboxes(common)
  return {
    ...sandboxes,
    // What a worker with other settings has left here is nobody else's to find.
    reap: async (signal) => [...(await local.reap(signal)), ...(await sandboxes.reap(signal))],
  }
}
