import { mkdir, readdir, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { orCancelled, settings, systemClock, throwIfCancelled, TuttiError, type Clock } from '@tutti/core'
import { isAbandoned } from '@tutti/processes'
import type { HostSandboxProvider, SandboxRef, SandboxSpec } from '@tutti/sandbox'
import { canMountDisk, checkMounts, createMountGuard, removeDisk, sandboxId } from '@tutti/sandbox/host'
import type { ContainerInfo } from 'dockerode'
import { checkImage, type CheckedImage } from './check-image.ts'
import {
  containerName,
  isOrphan,
  isOurs,
  labelNames,
  refOf,
  type ContainerLabels,
} from './container-labels.ts'
import { containerUser } from './container-user.ts'
import { diskFolderKind, diskFolderName, idOfFolder } from './disk-folder.ts'
import type { DockerSandbox } from './docker-sandbox.ts'
import { engineError } from './engine-error.ts'
import { connectEngine, type Engine } from './engine.ts'
import { findImage } from './find-image.ts'
import { killContainersNow } from './kill-containers-now.ts'
import { makeDockerSandbox } from './make-docker-sandbox.ts'
import { seccompOption } from './seccomp-profile.ts'
import { removeContainer } from './remove-container.ts'

export interface DockerSandboxesOptions {
  /** Folder of this provider alone; made when missing. Several processes may share it. */
  readonly root: string
  /** Tutti's data folder, which no sandbox may be given; `root` is refused in any case. */
  readonly dataDir?: string
  /** This host's Node, mounted into every sandbox; it must start on the image's C library. */
  readonly nodePath: string
  /** Name of the image that every sandbox is made of: with a shell, git, glibc, libstdc++ and libatomic. */
  readonly image: string
  /** Whether an image that the engine does not have is fetched. Default `never`: what runs is what somebody put there. */
  readonly pull?: 'never' | 'missing'
  /** The engine's network for sandboxes that are allowed one. Default `default`, a bridge; `host` is what local sandboxes get. */
  readonly network?: string
  /** The engine's Unix socket. Default: DOCKER_HOST, else the usual places of Docker and Podman. */
  readonly socketPath?: string
  /** Default: that of the process. DOCKER_HOST, XDG_RUNTIME_DIR and HOME are read. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** From SIGTERM to SIGKILL, in milliseconds. Default: that of the setting `stop.grace`. */
  readonly stopGraceMs?: number
  readonly clock?: Clock
  /** Default: a size-limited mount where one can be made, else a watchdog. */
  readonly disk?: 'mount' | 'watchdog'
}

/**
 * Sandboxes as containers of a Docker or Podman engine on this host, over its API.
 *
 * Their writable folders are this host's, below `root`, with the same limits as those of local sandboxes. A container ends when the process
 * that made it goes away, as its input does, or by the next {@link HostSandboxProvider.reap}. So `attach` only finds sandboxes of
 * this process.
 */
export function createDockerSandboxes(options: DockerSandboxesOptions): HostSandboxProvider {
  const { nodePath, stopGraceMs = settings['stop.grace'].default, clock = systemClock } = options
  const root = resolve(options.root)
  const living = new Map<string, Promise<DockerSandbox>>()
  /** Those of {@link living} that were made. */
  const made = new Map<string, DockerSandbox>()
  const ending = new Map<string, Promise<void>>()
  const checked = new Map<string, Promise<CheckedImage>>()
  const guard = createMountGuard(root)
  let connected: Promise<Engine> | undefined
  let mounts: Promise<boolean> | undefined
  /** Of the engine, once one has answered. */
  let socketPath: string | undefined

  // What is asked once for all is not cancelled with the one who asked first.
  const connect = (signal: AbortSignal): Promise<Engine> => {
    const asked = (connected ??= connectEngine({ ...options, env: options.env ?? process.env }))
    asked.then(
      (engine) => (socketPath = engine.socketPath),
      // One that was not there may be by the next try.
      () => (connected = undefined),
    )
    return orCancelled(asked, signal)
  }

  async function imageFor(engine: Engine, seccomp: string, signal: AbortSignal): Promise<CheckedImage> {
    const image = await findImage(engine, options.image, options.pull ?? 'never', signal)
    const check = async () => {
      const user = containerUser(engine)
      const request = { engine, image, nodePath: await realpath(nodePath), user, root, seccomp }
      return checkImage(request, new AbortController().signal)
    }
    const known = checked.get(image.id) ?? check()
    checked.set(image.id, known)
    known.catch(() => checked.delete(image.id))
    return orCancelled(known, signal)
  }

  async function make(spec: SandboxSpec, id: string, signal: AbortSignal): Promise<DockerSandbox> {
    checkMounts(spec, [root, ...(options.dataDir === undefined ? [] : [options.dataDir])])
    const engine = await connect(signal)
    await mkdir(root, { recursive: true, mode: 0o700 })
    await endForgotten(engine, id, spec.key, signal)
    const seccomp = await seccompOption(engine.kind, root)
    const image = await imageFor(engine, seccomp, signal)
    mounts ??= options.disk === 'watchdog' ? Promise.resolve(false) : canMountDisk(root)
    const mounted = await mounts
    throwIfCancelled(signal)
    const own = diskFolderName(id)
    try {
      const network = options.network ?? 'default'
      const parts = { engine, root, id, spec, image, seccomp, network, mounted, guard, clock }
      return await makeDockerSandbox({ ...parts, nodePath: await realpath(nodePath) }, signal)
    } catch (error) {
      // Ours alone: another process may have taken the name meanwhile. What fails now is left to the reaper.
      await end(engine, id, new AbortController().signal, isOurs, (name) => name === own).catch(() => {})
      throw error
    }
  }

  /** Of this key there may be something left: of a dead process, or of ours. @throws TuttiError when another one has it. */
  async function endForgotten(engine: Engine, id: string, key: string, signal: AbortSignal): Promise<void> {
    const isFree = (labels: ContainerLabels) => isOrphan(labels) || isOurs(labels)
    const found = (await containers(engine, signal)).filter(({ Labels }) => Labels[labelNames.id] === id)
    const folders = await foldersOf((name) => idOfFolder(name) === id)
    const isFreeFolder = (name: string) => isAbandoned(diskFolderKind, name) || name === diskFolderName(id)
    if (!found.every(({ Labels }) => isFree(Labels)) || !folders.every(isFreeFolder))
      throw new TuttiError('failed_precondition', `Another process has the sandbox ${key}.`, { key })
    await end(engine, id, signal, isFree, isFreeFolder)
  }

  /** Containers of this root, also those of dead processes and those that only try an image. */
  async function containers({ docker, socketPath }: Engine, signal: AbortSignal): Promise<ContainerInfo[]> {
    try {
      const filters = { label: [labelNames.root] }
      const found = await docker.listContainers({ all: true, filters, abortSignal: signal })
      return found.filter(({ Labels }) => Labels[labelNames.root] === root)
    } catch (thrown) {
      throw engineError(thrown, 'list containers', socketPath)
    }
  }

  const foldersOf = async (matches: (name: string) => boolean): Promise<string[]> =>
    (await readdir(root).catch(() => [])).filter(matches)

  /** The container first: what it has mounted could not be removed before. */
  async function end(
    engine: Engine,
    id: string,
    signal: AbortSignal,
    which: (labels: ContainerLabels) => boolean = () => true,
    whichFolder: (name: string) => boolean = () => true,
  ): Promise<void> {
    for (const { Id, Labels } of await containers(engine, signal))
      if (Labels[labelNames.id] === id && which(Labels)) await removeContainer(engine, Id, signal)
    for (const name of await foldersOf((folder) => idOfFolder(folder) === id && whichFolder(folder))) {
      await removeDisk(join(root, name))
      guard.remove(name)
    }
  }

  async function destroy(id: string, signal: AbortSignal): Promise<void> {
    const engine = await connect(signal)
    const running = await living.get(id)?.catch(() => undefined)
    if (running && stopGraceMs > 0 && (await running.alive(signal)) === 'running') {
      await running.terminate().catch(() => {})
      const over = new AbortController()
      const grace = clock.sleep(stopGraceMs, AbortSignal.any([signal, over.signal])).catch(() => {})
      await Promise.race([running.ended, grace]).finally(() => over.abort())
    }
    running?.release()
    await end(engine, id, signal)
    living.delete(id)
    made.delete(id)
  }

  const provider: HostSandboxProvider = {
    name: 'docker',

    async create(spec, signal) {
      throwIfCancelled(signal)
      const id = sandboxId(root, spec.key)
      await ending.get(id)
      const existing = living.get(id)
      if (existing) {
        const sandbox = await existing
        if (await isRunning(sandbox, signal)) return sandbox
        await provider.destroy(sandbox.ref, signal)
      }
      const making = make(spec, id, signal)
      living.set(id, making)
      making.then(
        (sandbox) => made.set(id, sandbox),
        () => living.delete(id),
      )
      return making
    },

    async attach(ref, signal) {
      const sandbox = await living.get(sandboxId(root, ref.key))?.catch(() => undefined)
      return sandbox && (await isRunning(sandbox, signal)) ? sandbox : null
    },

    async list(owner, signal) {
      const found = await containers(await connect(signal), signal)
      const refs = found
        .filter(({ Labels }) => Labels[labelNames.id] !== undefined)
        .filter(({ Labels }) => owner === undefined || Labels[labelNames.owner] === owner)
        .map(({ Labels }) => refOf(Labels))
      // Of one that somebody else removed the folders are still there.
      const removed = [...made.values()].filter(
        (sandbox) =>
          (owner === undefined || sandbox.owner === owner) && !refs.some(({ id }) => id === sandbox.ref.id),
      )
      return [...refs, ...removed.map(({ ref }) => ref)]
    },

    destroy(ref, signal) {
      const id = sandboxId(root, ref.key)
      const running = ending.get(id) ?? destroy(id, signal).finally(() => ending.delete(id))
      ending.set(id, running)
      return running
    },

    async reap(signal) {
      const engine = await connect(signal)
      const orphans = (await containers(engine, signal)).filter(({ Labels }) => isOrphan(Labels))
      const ended: SandboxRef[] = []
      const failures: unknown[] = []
      for (const { Id, Labels } of orphans) {
        await removeContainer(engine, Id, signal).then(
          () => Labels[labelNames.id] !== undefined && ended.push(refOf(Labels)),
          (error: unknown) => failures.push(error),
        )
      }
      // What a container still has mounted cannot be removed, and is tried again with it.
      for (const name of await foldersOf(
        (folder) => isAbandoned(diskFolderKind, folder) || isAbandoned('probe', folder),
      ))
        await removeDisk(join(root, name)).catch((error: unknown) => failures.push(error))
      if (failures.length > 0) throw failures[0]
      return ended
    },

    kill() {
      if (socketPath !== undefined) killContainersNow(root, socketPath, [...living.keys()].map(containerName))
    },
  }
  return provider
}

/** @throws TuttiError `unavailable` when that cannot be known: a second sandbox beside the first would be wrong. */
async function isRunning(sandbox: DockerSandbox, signal: AbortSignal): Promise<boolean> {
  const alive = await sandbox.alive(signal)
  throwIfCancelled(signal)
  if (alive !== 'unknown') return alive === 'running'
  throw new TuttiError(
    'unavailable',
    `The container engine does not say whether the sandbox ${sandbox.ref.key} is alive. Start the engine again.`,
    { key: sandbox.ref.key },
  )
}
