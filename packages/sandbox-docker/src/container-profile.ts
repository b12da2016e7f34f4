import { insidePaths, type SandboxDisk } from '@tutti/sandbox/host'
import type { SandboxLimits } from '@tutti/core'
import type { ContainerCreateOptions, MountSettings } from 'dockerode'
import type { ContainerUser } from './container-user.ts'
import { ownHardLimit } from './own-limits.ts'
import { supervisorScript } from './supervisor.ts'

export interface ContainerProfile {
  readonly name?: string
  /** Id of the image, so that what was checked is what runs. */
  readonly image: string
  /** Folders that the image wants to be volumes of their own. */
  readonly volumes: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly user: ContainerUser
  readonly engine: 'docker' | 'podman'
  readonly limits: SandboxLimits
  /** `none`, or a network of the engine's. */
  readonly network: string
  /** Absent for a container that writes nothing. */
  readonly disk?: SandboxDisk
  readonly readOnly: readonly { readonly host: string; readonly inside: string }[]
  /** Of {@link seccompProfile}: a path or the text, as the engine wants it. */
  readonly seccomp: string
  /** What process 1 runs, by /bin/sh. Default: {@link supervisorScript}. */
  readonly script?: string
}

const cpuPeriodUs = 100_000
/** Enough for a build with many files at a time, and few enough for programs that close every number there may be. */
const openFiles = 65_536
/** Counted for a user of the host, thus for all sandboxes together, and no more than Podman leaves to itself. */
const processesOfUser = 32_768

/**
 * The settings of a sandbox's container: nothing of the host but what is named, nothing writable but its own folders, no capability, no
 * network unless asked for, and every limit. Environment and program are not in it: see {@link supervisorScript}.
 */
export function containerProfile(profile: ContainerProfile): ContainerCreateOptions {
  const { user, limits } = profile
  const mounts = mountsOf(profile)
  const taken = new Set(['/run', ...mounts.map(({ Target }) => Target)])
  const volumes = profile.volumes.filter((path) => !taken.has(path))
  return {
    ...(profile.name === undefined ? {} : { name: profile.name }),
    Image: profile.image,
    Entrypoint: ['/bin/sh', '-c', profile.script ?? supervisorScript, 'tutti-supervisor'],
    Cmd: [],
    User: `${user.uid}:${user.gid}`,
    WorkingDir: '/',
    Hostname: 'agent',
    Labels: { ...profile.labels },
    // Whatever the image wants to have run now and then: it would be a program that nobody here has started.
    Healthcheck: { Test: ['NONE'] },
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    // Input ends when we go away, in whatever way; the agent server ends then, and the container with it.
    StdinOnce: true,
    Tty: false,
    HostConfig: {
      Mounts: mounts,
      Tmpfs: Object.fromEntries([
        // Podman gives every container one here that anybody may fill.
        ['/run', 'rw,nosuid,nodev,noexec,size=1m,mode=755'],
        // As volumes they would be as large as the engine's disk.
        ...volumes.map((path) => [path, 'rw,nosuid,nodev,size=64m,mode=1777'] as const),
      ]),
      ReadonlyRootfs: true,
      NetworkMode: profile.network,
      UsernsMode: user.usernsMode,
      IpcMode: 'private',
      // Docker has no other and no name for it; Podman may be set to share the host's.
      ...(profile.engine === 'podman' ? { PidMode: 'private' } : {}),
      CapDrop: ['ALL'],
      // Labels of SELinux would have to be written onto the files of the host that are mounted.
      SecurityOpt: ['no-new-privileges', 'label=disable', `seccomp=${profile.seccomp}`],
      // Output is the link to the agent server, with contents of files in it; engines keep all of it on disk unless told not to.
      LogConfig: { Type: 'none', Config: {} },
      RestartPolicy: { Name: 'no' },
      Memory: limits.memoryBytes,
      // Memory and swap together: no swap.
      MemorySwap: limits.memoryBytes,
      PidsLimit: limits.pids,
      // Not NanoCpus, which are refused above the number of cores there are.
      CpuPeriod: cpuPeriodUs,
      CpuQuota: Math.max(1000, Math.ceil((limits.cpuPercent * cpuPeriodUs) / 100)),
      Ulimits: [
        ulimit('core', 0),
        ulimit('fsize', Math.max(512, limits.fileBytes)),
        ulimit('nofile', Math.min(openFiles, ownHardLimit('Max open files'))),
        ulimit('nproc', Math.min(processesOfUser, ownHardLimit('Max processes'))),
      ],
    },
  }
}

const ulimit = (name: string, value: number) => ({ Name: name, Soft: value, Hard: value })

function mountsOf({ disk, readOnly }: ContainerProfile): MountSettings[] {
  const writable = disk
    ? [
        [disk.workspace, insidePaths.workspace],
        [disk.home, insidePaths.home],
        [disk.tmp, insidePaths.tmp],
        [disk.tmp, '/var/tmp'],
        [disk.shm, '/dev/shm'],
      ]
    : []
  return [
    ...writable.map(([host, inside]) => bind(host!, inside!, false)),
    ...readOnly.map(({ host, inside }) => bind(host, inside, true)),
  ]
}

/** Without what is mounted below it, which would not be read-only, and without what is mounted there later. */
const bind = (host: string, inside: string, readOnly: boolean): MountSettings => ({
  Type: 'bind',
  Source: host,
  Target: inside,
  ReadOnly: readOnly,
  BindOptions: { Propagation: 'rprivate', NonRecursive: true } as MountSettings['BindOptions'] & object,
})
