import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  enterGroups,
  groupCount,
  groupProcesses,
  readGroupFile,
  removeGroups,
  writeGroupFile,
} from './cgroup-folder.ts'
import { ownGroupFolder } from './cgroup-mounts.ts'
import type { ResourceLimiter } from './resource-group.ts'

const periodUs = 100_000

/** Groups in the memory, pids and cpu hierarchies, below this process's own; undefined when one of them is not mounted. */
export function createCgroupV1Limiter(): ResourceLimiter | undefined {
  const parents = {
    memory: ownGroupFolder('memory'),
    pids: ownGroupFolder('pids'),
    cpu: ownGroupFolder('cpu'),
  }
  if (!parents.memory || !parents.pids || !parents.cpu) return undefined
  const { memory, pids, cpu } = parents

  return {
    kind: 'cgroup-v1',
    note: 'memory, processes and cpu are limited by the kernel',
    createGroup(id, limits) {
      const name = `tutti-${id}`
      const folders = {
        memory: join(memory, name),
        pids: join(pids, name),
        cpu: join(cpu, name),
      }
      const list = Object.values(folders)
      try {
        for (const folder of list) mkdirSync(folder, { recursive: true })
        writeGroupFile(folders.memory, 'memory.limit_in_bytes', limits.memoryBytes)
        if (readGroupFile(folders.memory, 'memory.memsw.limit_in_bytes') !== '') {
          writeGroupFile(folders.memory, 'memory.memsw.limit_in_bytes', limits.memoryBytes)
        }
        writeGroupFile(folders.pids, 'pids.max', limits.pids)
        writeGroupFile(folders.cpu, 'cpu.cfs_period_us', periodUs)
        writeGroupFile(folders.cpu, 'cpu.cfs_quota_us', Math.ceil((limits.cpuPercent * periodUs) / 100))
      } catch (error) {
        removeGroups(list)
        throw error
      }
      return {
        kind: 'cgroup-v1',
        folders: list,
        prefix: enterGroups(list),
        processes: () => groupProcesses(list),
        limitHit() {
          if (groupCount(folders.memory, 'memory.oom_control', 'oom_kill') > 0) return 'memory'
          if (groupCount(folders.pids, 'pids.events', 'max') > 0) return 'pids'
          return undefined
        },
        remove: () => removeGroups(list),
      }
    },
  }
}
