import type { SandboxLimits } from '@tutti/core'
import { processStat } from '@tutti/processes'
import { measureFolders } from './measure-folder.ts'
import type { LimitName, Sandbox } from './port.ts'
import { mountedLimitHit, type SandboxDisk } from './sandbox-disk.ts'

export interface WatchedSandbox {
  readonly disk: SandboxDisk
  readonly limits: SandboxLimits
  /** True where no kernel group limits memory and processes. */
  readonly countProcesses: boolean
  processes(): number[]
  /** A limit was reached. With `kill` nothing else holds the sandbox back, and it must end. */
  onLimit(limit: LimitName, kill: boolean): void
}

const processIntervalMs = 500
const diskIntervalMs = 1000
/** One look at a mounted disk is all there is to it, and who meets its limit may make room soon. */
const mountedIntervalMs = 200
/** Measuring takes at most about this share of one core, however many files there are. */
const diskDuty = 1 / 10

/** An open watch keeps no process alive. */
export interface SandboxWatch {
  readonly measureDisk: Sandbox['measureDisk']
  stop(): void
}

/** Measures what the kernel does not limit for us. */
export function watchSandbox(watched: WatchedSandbox): SandboxWatch {
  let stopped = false
  let diskTimer: NodeJS.Timeout | undefined
  const intervalMs = watched.disk.mounted ? mountedIntervalMs : diskIntervalMs

  const checkProcesses = () => {
    const pids = watched.processes()
    if (pids.length > watched.limits.pids) return watched.onLimit('pids', true)
    const resident = pids.reduce((sum, pid) => sum + (processStat(pid)?.residentBytes ?? 0), 0)
    if (resident > watched.limits.memoryBytes) watched.onLimit('memory', true)
  }

  const measureDisk: Sandbox['measureDisk'] = async () => {
    if (watched.disk.mounted) return undefined
    const { workspace, home, tmp, shm } = watched.disk
    const { bytes, files } = await measureFolders([workspace, home, tmp, shm])
    const limit =
      bytes > watched.limits.diskBytes ? 'disk' : files > watched.limits.files ? 'files' : undefined
    if (limit && !stopped) watched.onLimit(limit, true)
    return limit
  }

  const checkDisk = async () => {
    const start = performance.now()
    const limit = watched.disk.mounted ? mountedLimitHit(watched.disk) : await measureDisk()
    if (limit && watched.disk.mounted) watched.onLimit(limit, false)
    if (stopped) return
    const wait = Math.max(intervalMs, (performance.now() - start) / diskDuty)
    diskTimer = setTimeout(() => void checkDisk(), wait).unref()
  }

  const processTimer = watched.countProcesses
    ? setInterval(checkProcesses, processIntervalMs).unref()
    : undefined
  diskTimer = setTimeout(() => void checkDisk(), intervalMs).unref()
  return {
    measureDisk,
    stop() {
      stopped = true
      clearInterval(processTimer)
      clearTimeout(diskTimer)
    },
  }
}
