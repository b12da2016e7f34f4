import type { SandboxLimits } from '@tutti/core'
import { processStat } from '@tutti/processes'
import { measureFolders } from './measure-folder.ts'
import type { LimitName } from './port.ts'
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

/** Measures what the kernel does not limit for us. Returns the stop function; an open watch keeps no process alive. */
export function watchSandbox(watched: WatchedSandbox): () => void {
  let stopped = false
  let diskTimer: NodeJS.Timeout | undefined
  const intervalMs = watched.disk.mounted ? mountedIntervalMs : diskIntervalMs

  const checkProcesses = () => {
    const pids = watched.processes()
    if (pids.length > watched.limits.pids) return watched.onLimit('pids', true)
    const resident = pids.reduce((sum, pid) => sum + (processStat(pid)?.residentBytes ?? 0), 0)
    if (resident > watched.limits.memoryBytes) watched.onLimit('memory', true)
  }

  const checkDisk = async () => {
    const start = performance.now()
    if (watched.disk.mounted) {
      const limit = mountedLimitHit(watched.disk)
      if (limit) watched.onLimit(limit, false)
    } else {
      const { workspace, home, tmp, shm } = watched.disk
      const size = await measureFolders([workspace, home, tmp, shm])
      if (stopped) return
      if (size.bytes > watched.limits.diskBytes) watched.onLimit('disk', true)
      else if (size.files > watched.limits.files) watched.onLimit('files', true)
    }
    if (stopped) return
    const wait = Math.max(intervalMs, (performance.now() - start) / diskDuty)
    diskTimer = setTimeout(() => void checkDisk(), wait).unref()
  }

  const processTimer = watched.countProcesses
    ? setInterval(checkProcesses, processIntervalMs).unref()
    : undefined
  diskTimer = setTimeout(() => void checkDisk(), intervalMs).unref()
  return () => {
    stopped = true
    clearInterval(processTimer)
    clearTimeout(diskTimer)
  }
}
