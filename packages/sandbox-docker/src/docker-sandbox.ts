import { chown } from 'node:fs/promises'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { throwIfCancelled, TuttiError } from '@tutti/core'
import type { Exec, ExecExit, ExecRequest, LimitName, Sandbox, SandboxSpec } from '@tutti/sandbox'
import {
  baseEnvironment,
  getHostFile,
  hostPath,
  insidePaths,
  mountedLimitHit,
  pathBelow,
  putHostFile,
  watchSandbox,
  type SandboxDisk,
} from '@tutti/sandbox/host'
import type { Container } from 'dockerode'
import type { CheckedImage } from './check-image.ts'
import type { ContainerGroup } from './container-group.ts'
import type { ContainerUser } from './container-user.ts'
import { demultiplex } from './demultiplex.ts'
import { engineError, statusOf } from './engine-error.ts'
import { exitOf } from './container-exit.ts'
import { launchText, type SupervisorAnswer } from './supervisor.ts'
import { takeLine } from './take-line.ts'

export interface DockerSandboxParts {
  readonly id: string
  readonly spec: SandboxSpec
  readonly disk: SandboxDisk
  readonly image: CheckedImage
  readonly user: ContainerUser
  readonly container: Container
  readonly socketPath: string
  /** The standard streams of the container, which was started after they were opened. */
  readonly streams: Duplex
  readonly group: ContainerGroup
}

export interface DockerSandbox extends Sandbox {
  readonly owner: string
  /** Resolves when the container has ended, or nothing more can be learnt of it. */
  readonly ended: Promise<ExecExit>
  /** Asks every program inside to end. */
  terminate(): Promise<void>
  /** Stops the watching and the streams; the container is removed elsewhere. */
  release(): void
}

const answerLimitMs = 5000
/** A container that dies takes its counters with it, so they are looked at now and then. */
const sampleMs = 250

/** One running container whose first process waits to be told what to run. */
export function createDockerSandbox(parts: DockerSandboxParts): DockerSandbox {
  const { spec, disk, container, streams, group, user } = parts
  const { stdout, stderr } = demultiplex(streams)
  // A container that is gone breaks it; its exit says so.
  streams.on('error', () => {})
  let limit: LimitName | undefined
  let started = false
  let gone = false

  const limitHit = (): LimitName | undefined =>
    (limit ??= group.limitHit() ?? (disk.mounted ? mountedLimitHit(disk) : undefined))
  const send = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    try {
      await container.kill({ signal })
    } catch (thrown) {
      // Gone, or not running any more: there is nothing left to signal.
      if (statusOf(thrown) === 404 || statusOf(thrown) === 409) return
      throw engineError(thrown, `signal a container`, parts.socketPath)
    }
  }
  const watch = watchSandbox({
    disk,
    limits: spec.policy.limits,
    countProcesses: false,
    processes: () => [],
    onLimit(name, kill) {
      limit ??= name
      if (kill) send('SIGKILL').catch(() => {})
    },
  })
  const sampler = setInterval(limitHit, sampleMs).unref()
  const ended = exitOf(container, streams).then(({ over, exit, outOfMemory }) => {
    gone ||= over
    if (outOfMemory) limit ??= 'memory'
    limitHit()
    clearInterval(sampler)
    return { ...exit, ...(limit ? { limit } : {}) }
  })

  const folders = [
    { inside: insidePaths.workspace, host: disk.workspace },
    { inside: insidePaths.home, host: disk.home },
  ]
  const environment = (request: ExecRequest) =>
    baseEnvironment({
      id: parts.id,
      home: insidePaths.home,
      tmp: insidePaths.tmp,
      nodePath: insidePaths.node,
      extraPath: pathBelow(process.env['PATH'], spec.policy.mounts),
      ...(parts.image.path === undefined ? {} : { systemPath: parts.image.path }),
      given: { ...spec.env, ...request.env },
    })

  const write = (bytes: Uint8Array | string): Promise<void> =>
    new Promise((resolve, reject) =>
      streams.write(bytes, (error) =>
        error
          ? reject(new TuttiError('unavailable', 'The program no longer reads its input.', {}, error))
          : resolve(),
      ),
    )

  async function launch(request: ExecRequest): Promise<void> {
    const cwd = request.cwd ?? insidePaths.workspace
    // A container that has ended breaks the connection; there is no answer then either.
    await write(launchText({ argv: request.argv, cwd, env: environment(request) })).catch(
      (thrown: unknown) => {
        if (thrown instanceof TuttiError && thrown.code !== 'unavailable') throw thrown
      },
    )
    const answer = (await takeLine(stdout)) as SupervisorAnswer | undefined
    if (answer === 'started') return
    if (answer === 'no-program') {
      const program = request.argv[0]!
      throw new TuttiError('not_found', `There is no program ${program} in the image ${parts.image.name}.`, {
        program,
      })
    }
    if (answer === 'no-folder')
      throw new TuttiError('not_found', `There is no folder ${cwd} inside.`, { path: cwd })
    throw new TuttiError('unavailable', 'The sandbox ended before its program was started; make a new one.', {
      sandbox: parts.id,
    })
  }

  return {
    owner: spec.owner,
    ref: { provider: 'docker', key: spec.key, id: parts.id },
    workdir: insidePaths.workspace,
    home: insidePaths.home,
    nodePath: insidePaths.node,
    isolated: true,
    ended,
    pathOf: (inside) => inside,
    async exec(request, signal): Promise<Exec> {
      throwIfCancelled(signal)
      if (gone)
        throw new TuttiError('unavailable', 'The sandbox has ended; make a new one.', { sandbox: parts.id })
      if (started) {
        throw new TuttiError(
          'failed_precondition',
          'An isolated sandbox runs one main program; run more through the agent server inside.',
          { sandbox: parts.id },
        )
      }
      started = true
      const stop = () => void send('SIGKILL').catch(() => {})
      signal.addEventListener('abort', stop, { once: true })
      try {
        await launch(request)
      } finally {
        signal.removeEventListener('abort', stop)
        throwIfCancelled(signal)
      }
      return {
        stdout,
        stderr,
        exit: ended,
        write,
        closeStdin: () => new Promise((resolve) => (streams.writable ? streams.end(resolve) : resolve())),
        kill: send,
      }
    },
    async put(files, signal) {
      if (started)
        throw new TuttiError(
          'failed_precondition',
          'Files can be put only before the first program runs.',
          {},
        )
      for (const file of files) {
        throwIfCancelled(signal)
        const { root, below } = hostPath(file.path, folders)
        await putHostFile(root, below, file.bytes, file.mode)
        if (!user.foreign) continue
        for (const index of below.keys())
          await chown(join(root, ...below.slice(0, index + 1)), user.uid, user.gid)
      }
    },
    async get(path, maxBytes, signal) {
      throwIfCancelled(signal)
      const { root, below } = hostPath(path, folders)
      return getHostFile(root, below, maxBytes)
    },
    async alive(signal) {
      if (gone) return 'gone'
      try {
        const { State } = await container.inspect({
          abortSignal: AbortSignal.any([signal, AbortSignal.timeout(answerLimitMs)]),
        })
        return State.Running ? 'running' : 'gone'
      } catch (thrown) {
        // Only the engine's own word counts: one that does not answer may have it running all the same.
        return statusOf(thrown) === 404 ? 'gone' : 'unknown'
      }
    },
    limitHit,
    hasOwnDisk: disk.mounted,
    measureDisk: watch.measureDisk,
    async terminate() {
      if (!gone) await send('SIGTERM')
    },
    release() {
      gone = true
      // The counters and the mount go next.
      limitHit()
      watch.stop()
      clearInterval(sampler)
      streams.destroy()
    },
  }
}
