import { statSync } from 'node:fs'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'

export interface EngineLocation {
  /** Path of the Unix socket on which the engine's API is served. */
  readonly socketPath: string
  /** Where the path is from, for messages. */
  readonly from: 'option' | 'DOCKER_HOST' | 'usual place'
}

export interface FindEngineOptions {
  readonly socketPath?: string
  /** Of the process: DOCKER_HOST, XDG_RUNTIME_DIR and HOME are read. */
  readonly env: Readonly<Record<string, string | undefined>>
}

export const howToGetAnEngine =
  'Install Docker or Podman and start its service (sudo systemctl start docker, or systemctl --user start podman.socket), ' +
  'or name its socket: DOCKER_HOST=unix:///path'

/**
 * Which engine to use: the option, else DOCKER_HOST, else the first socket in the usual places of Docker and Podman.
 *
 * @throws TuttiError `failed_precondition` for an engine behind a network, whose machine does not have the folders that a sandbox
 *   mounts; `unavailable` when there is none.
 */
export function findEngine({ socketPath, env }: FindEngineOptions): EngineLocation {
  if (socketPath !== undefined) return { socketPath, from: 'option' }
  const named = env['DOCKER_HOST']
  if (named !== undefined && named !== '') {
    const path = /^unix:\/\/(\/.*)$/.exec(named)?.[1] ?? (named.startsWith('/') ? named : undefined)
    if (path !== undefined) return { socketPath: path, from: 'DOCKER_HOST' }
    throw new TuttiError(
      'failed_precondition',
      `DOCKER_HOST is ${named}; sandboxes mount folders of this host, so their engine must run here too. Use unix:///path.`,
      { field: 'DOCKER_HOST' },
    )
  }
  const places = usualPlaces(env)
  const found = places.find(isSocket)
  if (found !== undefined) return { socketPath: found, from: 'usual place' }
  throw new TuttiError(
    'unavailable',
    `No container engine was found at ${places.join(', ')}. ${howToGetAnEngine}.`,
  )
}

function usualPlaces(env: FindEngineOptions['env']): string[] {
  const runtime = env['XDG_RUNTIME_DIR']
  const home = env['HOME']
  return [
    '/var/run/docker.sock',
    ...(runtime ? [join(runtime, 'docker.sock'), join(runtime, 'podman', 'podman.sock')] : []),
    ...(home ? [join(home, '.docker', 'run', 'docker.sock')] : []),
    '/run/podman/podman.sock',
  ]
}

function isSocket(path: string): boolean {
  try {
    return statSync(path).isSocket()
  } catch {
    // Not there, or in a folder that is not ours.
    return false
  }
}
