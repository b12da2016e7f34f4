import { TuttiError, type SandboxPolicy, type SettingName } from '@tutti/core'
import type { LimitName, Sandbox } from '@tutti/sandbox'

const words: Record<LimitName, string> = {
  memory: 'memory',
  pids: 'processes',
  disk: 'disk space',
  files: 'files',
  file_size: 'file size',
}

/**
 * The limit that something has failed by: one that was seen at the sandbox, or that the error tells of. By the time that one looks at a
 * disk, what did not fit may be gone again.
 */
export function limitBehind(
  sandbox: Pick<Sandbox, 'limitHit' | 'hasOwnDisk'>,
  thrown?: unknown,
): LimitName | undefined {
  const seen = sandbox.limitHit()
  return seen ?? (isHostDiskFull(sandbox, thrown) ? undefined : limitOf(thrown))
}

/** Something did not fit, and it was the host's disk that was full: what a sandbox has reached of its own limits is seen there. */
export const isHostDiskFull = (sandbox: Pick<Sandbox, 'limitHit' | 'hasOwnDisk'>, thrown: unknown): boolean =>
  !sandbox.hasOwnDisk && !sandbox.limitHit() && ['disk', 'files'].includes(limitOf(thrown) ?? '')

function limitOf(thrown: unknown): LimitName | undefined {
  if (!(thrown instanceof TuttiError) || thrown.detail['reason'] !== 'resource_limit') return undefined
  return limitNames.find((name) => name === thrown.detail['limit'])
}

const limitNames = Object.keys(words) as LimitName[]

/** What a disk can be too small in. */
export type DiskLimit = keyof typeof disk

const mib = (bytes: number) => `${Math.round(bytes / 1024 ** 2)} MiB`
const disk = {
  disk: { key: 'diskBytes', show: mib },
  files: { key: 'files', show: (files: number) => `${files} files` },
  file_size: { key: 'fileBytes', show: mib },
} as const satisfies Partial<Record<LimitName, unknown>>

export const isOfDisk = (limit: LimitName | undefined): limit is DiskLimit =>
  limit !== undefined && Object.hasOwn(disk, limit)

/** The same, with a disk that takes twice as much of it; a file may then be as large as the disk, which is what the commits are in. */
export function withMore({ limits, ...policy }: SandboxPolicy, limit: DiskLimit): SandboxPolicy {
  const { key } = disk[limit]
  const twice = limits[key] * 2
  const more = limit === 'file_size' ? Math.max(twice, limits.diskBytes) : twice
  return { ...policy, limits: { ...limits, [key]: more } }
}

/** Of the disk that was asked for, when the workspace did not fit into the largest that was tried either. */
export function tooSmall(asked: SandboxPolicy, tried: SandboxPolicy, limit: DiskLimit): string {
  const setting: SettingName = `sandbox.${limit}`
  const [size, largest] = [diskSize(asked, limit), diskSize(tried, limit)]
  if (largest === size)
    return `The workspace does not fit into its sandbox: ${setting} is ${size}. Start with a larger ${setting}.`
  return `The workspace and the commits that it comes from do not fit into a sandbox: ${setting} is ${size}, and ${largest} were too small as well. Start with a larger ${setting}.`
}

export const diskSize = (policy: SandboxPolicy, limit: DiskLimit): string =>
  disk[limit].show(policy.limits[disk[limit].key])

export function limitDetail(limit: LimitName): string {
  const setting: SettingName = `sandbox.${limit}`
  return `The sandbox reached its limit of ${words[limit]}. Raise it with the setting ${setting}, or give the agent less to do at once.`
}
