import { mkdir, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import { TuttiError } from '@tutti/core'
import { canMountDisk, diskNotes } from '@tutti/sandbox/host'
import { checkImage } from './check-image.ts'
import { containerUser } from './container-user.ts'
import type { DockerSandboxesOptions } from './docker-sandboxes.ts'
import { connectEngine } from './engine.ts'
import { findImage } from './find-image.ts'
import { seccompOption } from './seccomp-profile.ts'

/** What container sandboxes can do on this machine, for `doctor`. Everything was found by doing it. */
export interface DockerSandboxDescription {
  /** The engine that answered. */
  readonly engine?: {
    readonly kind: 'docker' | 'podman'
    readonly version: string
    readonly socketPath: string
    readonly rootless: boolean
  }
  /** The image, when sandboxes can be made of it: versions of what it has. */
  readonly image?: { readonly name: string; readonly git: string; readonly glibc: string }
  /** Why there is no engine or no image, with what to do. */
  readonly problem?: string
  readonly disk: 'mount' | 'watchdog'
  readonly diskNote: string
}

/**
 * Tries what `createDockerSandboxes` with these options would use, but fetches nothing. Takes about a second; leaves no container and,
 * below `root`, nothing that sandboxes would not leave.
 */
export async function describeDockerSandbox(
  options: Pick<DockerSandboxesOptions, 'root' | 'nodePath' | 'image' | 'socketPath' | 'env'>,
): Promise<DockerSandboxDescription> {
  const root = resolve(options.root)
  await mkdir(root, { recursive: true, mode: 0o700 })
  const disk = (await canMountDisk(root)) ? 'mount' : 'watchdog'
  const found: { -readonly [Name in keyof DockerSandboxDescription]: DockerSandboxDescription[Name] } = {
    disk,
    diskNote: diskNotes[disk],
  }
  const { signal } = new AbortController()
  try {
    const engine = await connectEngine({ ...options, env: options.env ?? process.env })
    const { kind, version, socketPath, rootless } = engine
    found.engine = { kind, version, socketPath, rootless }
    const image = await findImage(engine, options.image, 'never', signal)
    const nodePath = await realpath(options.nodePath)
    const seccomp = await seccompOption(kind, root)
    const request = { engine, image, nodePath, user: containerUser(engine), root, seccomp }
    const { name, git, glibc } = await checkImage(request, signal)
    found.image = { name, git, glibc }
  } catch (thrown) {
    found.problem = TuttiError.from(thrown).message
  }
  return found
}
