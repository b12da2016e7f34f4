import { spawnSync } from 'node:child_process'
import { unifiedLimitHit } from './cgroup-v2.ts'
import { groupProcesses } from './cgroup-folder.ts'
import type { ResourceLimiter } from './resource-group.ts'

const properties = (limits: { memoryBytes: number; pids: number; cpuPercent: number }): string[] => [
  `--property=MemoryMax=${limits.memoryBytes}`,
  '--property=MemorySwapMax=0',
  `--property=TasksMax=${limits.pids}`,
  `--property=CPUQuota=${limits.cpuPercent}%`,
]

const scope = ['systemd-run', '--user', '--scope', '--quiet', '--collect']

/** Scopes of the user's own systemd: how an ordinary user gets kernel limits. Undefined when there is no such systemd. */
export function createSystemdLimiter(): ResourceLimiter | undefined {
  const probe = spawnSync(
    scope[0]!,
    [...scope.slice(1), ...properties({ memoryBytes: 1 << 26, pids: 16, cpuPercent: 100 }), 'true'],
    { stdio: 'ignore', timeout: 3000 },
  )
  if (probe.status !== 0) return undefined
  const shown = spawnSync('systemctl', ['--user', 'show', '--property=ControlGroup', '--value'], {
    encoding: 'utf8',
    timeout: 3000,
  })
  const manager = shown.stdout?.trim()
  if (!manager) return undefined

  return {
    kind: 'systemd-run',
    note: 'memory, processes and cpu are limited by the kernel through the user’s systemd',
    createGroup(id, limits) {
      const unit = `tutti-${id}.scope`
      // Scopes made by hand land in app.slice; the folder goes with its last process, so nothing is to be removed.
      const folder = `/sys/fs/cgroup${manager}/app.slice/${unit}`
      return {
        kind: 'systemd-run',
        folders: [folder],
        prefix: [...scope, `--unit=${unit}`, ...properties(limits), '--'],
        processes: () => groupProcesses([folder]),
        limitHit: () => unifiedLimitHit(folder),
        remove() {},
      }
    },
  }
}
