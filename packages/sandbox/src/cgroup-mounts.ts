import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folder of this process's own group in a version 1 hierarchy, or with `''` in the version 2 one; undefined when not mounted. */
export const ownGroupFolder = (controller: string): string | undefined => groupFolderOf('self', controller)

/** Likewise for any process of this host. @throws the system's error when there is no such process. */
export function groupFolderOf(pid: number | 'self', controller: string): string | undefined {
  const own = readFileSync(`/proc/${pid}/cgroup`, 'utf8')
    .split('\n')
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
    .find((match) => match && match[1]!.split(',').includes(controller))?.[2]
  if (own === undefined) return undefined
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [mount, filesystem] = line.split(' - ')
    if (!mount || !filesystem) continue
    const [type, , options] = filesystem.split(' ')
    const fits =
      controller === '' ? type === 'cgroup2' : type === 'cgroup' && options?.split(',').includes(controller)
    if (!fits) continue
    const fields = mount.split(' ')
    const root = fields[3]!
    const point = fields[4]!
    // In a container the hierarchy is often mounted from the container's own group on.
    if (root === '/') return join(point, own)
    return own === root || own.startsWith(`${root}/`) ? join(point, own.slice(root.length)) : point
  }
  return undefined
}
