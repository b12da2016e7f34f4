import { dirname } from 'node:path'
import { groupCount, groupFolderOf } from '@tutti/sandbox/host'
import type { LimitName } from '@tutti/sandbox'

/** The counters that the kernel keeps of a running container. */
export interface ContainerGroup {
  /** What it has run into so far; undefined too where the counters cannot be read. */
  limitHit(): LimitName | undefined
}

/**
 * Reads the counters of the container's kernel group on this host: an engine tells of memory only, and only at the end.
 *
 * @param pid of the container's first process, as the engine tells it. It counts only when its group is named after the container, since
 *   an engine in a virtual machine counts its own processes.
 */
export function containerGroup(pid: number, containerId: string): ContainerGroup {
  // `''` is the hierarchy of version 2, which has all of them.
  const folders = ['memory', 'pids', ''].flatMap((controller) => {
    try {
      const folder = groupFolderOf(pid, controller)
      // Some engines put the processes into a group within the one that has the limits.
      return folder === undefined
        ? []
        : [folder, dirname(folder)].filter((path) => path.includes(containerId))
    } catch {
      // No such process here: it has ended, or runs on another kernel.
      return []
    }
  })
  const counted = (file: string, name: string) => folders.some((folder) => groupCount(folder, file, name) > 0)
  return {
    limitHit() {
      if (counted('memory.events', 'oom_kill') || counted('memory.oom_control', 'oom_kill')) return 'memory'
      return counted('pids.events', 'max') ? 'pids' : undefined
    },
  }
}
