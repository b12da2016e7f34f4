import { mkdirSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  enterGroups,
  groupCount,
  groupProcesses,
  readGroupFile,
  removeGroups,
  writeGroupFile,
} from './cgroup-folder.ts'
import { ownGroupFolder } from './cgroup-mounts.ts'
import type { ResourceGroup, ResourceLimiter } from './resource-group.ts'

const controllers = ['memory', 'pids', 'cpu']
const periodUs = 100_000

/**
 * Groups in the unified hierarchy, below this process's group or beside it, wherever the three controllers can be handed
 * down; undefined when nowhere.
 */
export function createCgroupV2Limiter(own = ownGroupFolder('')): ResourceLimiter | undefined {
  if (!own) return undefined
  const parent = [own, dirname(own)].find(handsDown)
  if (!parent) return undefined

  return {
    kind: 'cgroup-v2',
    note: 'memory, processes and cpu are limited by the kernel',
    createGroup(id, limits) {
      const folder = join(parent, `tutti-${id}`)
      try {
        mkdirSync(folder, { recursive: true })
        writeGroupFile(folder, 'memory.max', limits.memoryBytes)
        if (readGroupFile(folder, 'memory.swap.max') !== '') writeGroupFile(folder, 'memory.swap.max', 0)
        writeGroupFile(folder, 'pids.max', limits.pids)
        writeGroupFile(folder, 'cpu.max', `${Math.ceil((limits.cpuPercent * periodUs) / 100)} ${periodUs}`)
      } catch (error) {
        removeGroups([folder])
        throw error
      }
      return {
        kind: 'cgroup-v2',
        folders: [folder],
        prefix: enterGroups([folder]),
        processes: () => groupProcesses([folder]),
        limitHit: () => unifiedLimitHit(folder),
        remove: () => removeGroups([folder]),
      }
    },
  }
}

export function unifiedLimitHit(folder: string): ReturnType<ResourceGroup['limitHit']> {
  if (groupCount(folder, 'memory.events', 'oom_kill') > 0) return 'memory'
  if (groupCount(folder, 'pids.events', 'max') > 0) return 'pids'
  return undefined
}

/** A group with processes of its own may not hand controllers down, unless it is the root: only trying tells. */
function handsDown(folder: string): boolean {
  const probe = join(folder, `tutti-probe-${process.pid}`)
  try {
    const enabled = readGroupFile(folder, 'cgroup.subtree_control').split(/\s+/)
    const missing = controllers.filter((name) => !enabled.includes(name))
    if (missing.length > 0) {
      writeGroupFile(folder, 'cgroup.subtree_control', missing.map((name) => `+${name}`).join(' '))
    }
    mkdirSync(probe)
    const works = readGroupFile(probe, 'memory.max') !== '' && readGroupFile(probe, 'pids.max') !== ''
    rmdirSync(probe)
    return works
  } catch {
    return false
  }
}
