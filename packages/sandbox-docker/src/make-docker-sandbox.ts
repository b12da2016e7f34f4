import { join } from 'node:path'
import type { Clock } from '@tutti/core'
import type { SandboxSpec } from '@tutti/sandbox'
import { insidePaths, makeDisk, type MountGuard } from '@tutti/sandbox/host'
import { attachContainer } from './attach-container.ts'
import type { CheckedImage } from './check-image.ts'
import { checkReadable, giveFolders, makeEtcFiles } from './container-files.ts'
import { containerGroup } from './container-group.ts'
import { containerName, sandboxLabels } from './container-labels.ts'
import { containerProfile } from './container-profile.ts'
import { containerUser } from './container-user.ts'
import { diskFolderName } from './disk-folder.ts'
import { createDockerSandbox, type DockerSandbox } from './docker-sandbox.ts'
import { engineError } from './engine-error.ts'
import type { Engine } from './engine.ts'

export interface MakeRequest {
  readonly engine: Engine
  readonly root: string
  readonly id: string
  readonly spec: SandboxSpec
  readonly image: CheckedImage
  /** Links resolved. */
  readonly nodePath: string
  readonly seccomp: string
  /** For a sandbox that is allowed one. */
  readonly network: string
  readonly mounted: boolean
  readonly guard: MountGuard
  readonly clock: Clock
}

/**
 * Makes the folders and starts the container. What a failure leaves has the id in its name; the caller removes it.
 *
 * @throws TuttiError as {@link engineError} says; `failed_precondition` when another process took the name meanwhile.
 */
export async function makeDockerSandbox(request: MakeRequest, signal: AbortSignal): Promise<DockerSandbox> {
  const { engine, root, id, spec, image } = request
  const { docker, socketPath } = engine
  const { policy } = spec
  const user = containerUser(engine)
  const given = [...spec.readOnly, ...policy.mounts.map((path) => ({ host: path, inside: path }))]
  await checkReadable(given, user)
  const folder = diskFolderName(id)
  if (request.mounted) request.guard.add(folder)
  const disk = await makeDisk(join(root, folder), policy.limits, request.mounted)
  await giveFolders(disk, user)
  const etc = await makeEtcFiles(disk, image, user, policy.allowNetwork)
  try {
    const container = await docker.createContainer({
      ...containerProfile({
        name: containerName(id),
        image: image.id,
        volumes: image.volumes,
        labels: sandboxLabels(root, id, spec, request.clock.now()),
        user,
        engine: engine.kind,
        seccomp: request.seccomp,
        limits: policy.limits,
        network: policy.allowNetwork ? request.network : 'none',
        disk,
        readOnly: [{ host: request.nodePath, inside: insidePaths.node }, ...etc, ...given],
      }),
      abortSignal: signal,
    })
    const streams = await attachContainer(socketPath, container.id, signal)
    try {
      await container.start({ abortSignal: signal })
      const { State } = await container.inspect({ abortSignal: signal })
      const group = containerGroup(State.Pid, container.id)
      return createDockerSandbox({ id, spec, disk, image, user, container, socketPath, streams, group })
    } catch (thrown) {
      streams.destroy()
      throw thrown
    }
  } catch (thrown) {
    throw engineError(thrown, 'start the container of a sandbox', socketPath)
  }
}
