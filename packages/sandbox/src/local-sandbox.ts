import { realpathSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TuttiError, throwIfCancelled } from '@tutti/core'
import { isSameProcess, processStart, signalProcess } from '@tutti/processes'
import { baseEnvironment, pathBelow } from './base-environment.ts'
import { bubblewrapProfile, insidePaths, ownEtcFiles } from './bubblewrap-profile.ts'
import type { BubblewrapSupport } from './bubblewrap-probe.ts'
import { sandboxProcesses } from './end-processes.ts'
import { getHostFile, hostPath, putHostFile } from './host-files.ts'
import { launchArgv } from './launch-argv.ts'
import type { Exec, ExecRequest, LimitName, Sandbox, SandboxSpec } from './port.ts'
import { capProcesses } from './process-cap.ts'
import type { ResourceGroup } from './resource-group.ts'
import { mountedLimitHit, type SandboxDisk } from './sandbox-disk.ts'
import { sandboxMarker } from './sandbox-marker.ts'
import { writeState, type SandboxState } from './sandbox-state.ts'
import { seccompFilter } from './seccomp-filter.ts'
import { startProgram } from './start-program.ts'
import { watchSandbox } from './watch-sandbox.ts'

const filter = seccompFilter()

export interface LocalSandboxParts {
  readonly root: string
  readonly spec: SandboxSpec
  readonly state: SandboxState
  readonly disk: SandboxDisk
  readonly group: ResourceGroup
  readonly nodePath: string
  /** Absent for isolation `none`. */
  readonly bubblewrap?: BubblewrapSupport & { works: true }
}

export interface LocalSandbox extends Sandbox {
  /** The newest state, with the processes that were started. */
  state(): SandboxState
  /** Stops the watching; the processes are ended elsewhere. */
  release(): void
}

/** One sandbox on this host: folders, limits and, once exec'd, processes. */
export function createLocalSandbox(parts: LocalSandboxParts): LocalSandbox {
  const { spec, disk, group, bubblewrap } = parts
  let state = parts.state
  let limit: LimitName | undefined
  let started = false
  let gone = false

  const limitHit = (): LimitName | undefined =>
    (limit ??= group.limitHit() ?? (disk.mounted ? mountedLimitHit(disk) : undefined))
  const watch = watchSandbox({
    disk,
    limits: spec.policy.limits,
    countProcesses: group.kind === 'watchdog',
    processes: () => (started ? sandboxProcesses(state) : []),
    onLimit(name, kill) {
      limit ??= name
      if (!kill) return
      // The namespace dies with its first process, all at once; whatever else there is, one by one.
      if (state.init && isSameProcess(state.init.pid, state.init.start))
        signalProcess(state.init.pid, 'SIGKILL')
      for (const pid of sandboxProcesses(state)) signalProcess(pid, 'SIGKILL')
    },
  })
  const paths = bubblewrap
    ? {
        workspace: insidePaths.workspace,
        home: insidePaths.home,
        tmp: insidePaths.tmp,
        node: insidePaths.node,
      }
    : { workspace: disk.workspace, home: disk.home, tmp: disk.tmp, node: parts.nodePath }
  const ownFolders = [
    { inside: paths.workspace, host: disk.workspace },
    { inside: paths.home, host: disk.home },
  ]
  const mounts = spec.policy.mounts.map((path) => ({ host: path, inside: path }))

  const environment = (request: ExecRequest) =>
    baseEnvironment({
      id: state.id,
      home: paths.home,
      tmp: paths.tmp,
      nodePath: paths.node,
      extraPath: bubblewrap
        ? pathBelow(process.env['PATH'], spec.policy.mounts)
        : (process.env['PATH'] ?? '').split(':').filter((folder) => folder !== ''),
      given: { ...spec.env, ...request.env },
    })

  async function execIsolated(
    support: BubblewrapSupport & { works: true },
    request: ExecRequest,
  ): Promise<Exec> {
    const etcFolder = join(disk.folder, 'etc')
    await mkdir(etcFolder, { mode: 0o700 })
    for (const [name, text] of Object.entries(ownEtcFiles)) await writeFile(join(etcFolder, name), text)
    const profile = bubblewrapProfile({
      disk,
      shareNetwork: spec.policy.allowNetwork,
      readOnly: [
        { host: realpathSync(parts.nodePath), inside: insidePaths.node },
        ...spec.readOnly,
        ...mounts,
      ],
      cwd: request.cwd ?? paths.workspace,
      env: environment(request),
      etcFolder,
      disableUserNamespaces: support.disableUserNamespaces,
    })
    const capped =
      group.kind === 'watchdog' ? capProcesses(request.argv, spec.policy.limits.pids) : request.argv
    const filtered = filter ? ['--seccomp', '5'] : []
    const bwrap = [support.path, '--args', '3', '--info-fd', '4', ...filtered, '--', ...capped]
    const program = await startProgram({
      argv: launchArgv(group.prefix, spec.policy.limits.fileBytes, bwrap),
      cwd: '/',
      // bwrap's own environment stays readable inside, as that of process 1.
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', [sandboxMarker]: state.id },
      secret: profile.map((argument) => `${argument}\0`).join(''),
      tells: true,
      ...(filter ? { filter } : {}),
      limitHit,
      signal(signal, pid) {
        if (signal === 'SIGKILL') return signalProcess(pid, signal)
        const shell = new Set([state.main?.pid, state.init?.pid])
        for (const inner of sandboxProcesses(state)) if (!shell.has(inner)) signalProcess(inner, signal)
      },
    })
    await remember({ main: program.name })
    const told = await program.told
    const init = told === '' ? undefined : (JSON.parse(told) as { 'child-pid': number })['child-pid']
    const start = init === undefined ? undefined : processStart(init)
    if (init !== undefined && start !== undefined) await remember({ init: { pid: init, start } })
    void program.exec.exit.then(() => {
      gone = true
      // One whose bwrap dies early, before the kernel was told that it shall die with it, would live on and hold our pipes open.
      for (const pid of sandboxProcesses(state)) signalProcess(pid, 'SIGKILL')
    })
    return program.exec
  }

  async function execPlain(request: ExecRequest): Promise<Exec> {
    const program = await startProgram({
      argv: launchArgv(group.prefix, spec.policy.limits.fileBytes, request.argv),
      cwd: request.cwd ?? paths.workspace,
      env: environment(request),
      limitHit,
      signal: (signal, pid) => signalProcess(-pid, signal),
    })
    if (!state.main) await remember({ main: program.name })
    return program.exec
  }

  async function remember(names: Pick<SandboxState, 'main' | 'init'>): Promise<void> {
    state = { ...state, ...names }
    await writeState(parts.root, state)
  }

  return {
    ref: { provider: 'local', key: spec.key, id: state.id },
    workdir: paths.workspace,
    home: paths.home,
    nodePath: paths.node,
    isolated: bubblewrap !== undefined,
    pathOf(inside) {
      if (bubblewrap) return inside
      const mount = spec.readOnly.find(
        (entry) => inside === entry.inside || inside.startsWith(`${entry.inside}/`),
      )
      return mount ? mount.host + inside.slice(mount.inside.length) : inside
    },
    async exec(request, signal) {
      throwIfCancelled(signal)
      if (gone)
        throw new TuttiError('unavailable', 'The sandbox has ended; make a new one.', { sandbox: state.id })
      if (bubblewrap && started) {
        throw new TuttiError(
          'failed_precondition',
          'An isolated sandbox runs one main program; run more through the agent server inside.',
          { sandbox: state.id },
        )
      }
      started = true
      return bubblewrap ? execIsolated(bubblewrap, request) : execPlain(request)
    },
    async put(files, signal) {
      if (started) {
        throw new TuttiError(
          'failed_precondition',
          'Files can be put only before the first program runs.',
          {},
        )
      }
      for (const file of files) {
        throwIfCancelled(signal)
        const { root, below } = hostPath(file.path, ownFolders)
        await putHostFile(root, below, file.bytes, file.mode)
      }
    },
    async get(path, maxBytes, signal) {
      throwIfCancelled(signal)
      const { root, below } = hostPath(path, ownFolders)
      return getHostFile(root, below, maxBytes)
    },
    async alive() {
      return gone ? 'gone' : 'running'
    },
    limitHit,
    hasOwnDisk: disk.mounted,
    measureDisk: watch.measureDisk,
    state: () => state,
    release() {
      gone = true
      // The groups and the mount go next, and their counters with them.
      limitHit()
      watch.stop()
    },
  }
}
