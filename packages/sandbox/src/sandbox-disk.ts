import { execFile } from 'node:child_process'
import { readFileSync, statfsSync } from 'node:fs'
import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { TuttiError } from '@tutti/core'
import { passingName } from '@tutti/processes'

const run = promisify(execFile)

/** The writable folders of one sandbox, on the host. */
export interface SandboxDisk {
  readonly folder: string
  readonly workspace: string
  readonly home: string
  readonly tmp: string
  /** Shared memory, /dev/shm inside: on disk, so that it counts. */
  readonly shm: string
  /** Folders are on a file system of their own, of the size that is allowed: the kernel refuses what is too much. */
  readonly mounted: boolean
}

export interface DiskLimits {
  readonly diskBytes: number
  readonly files: number
}

/** Where the writable folders of a sandbox are, and what is mounted when something is; the mount guard knows it by this name too. */
export const diskData = (folder: string): string => join(folder, 'data')

const diskAt = (folder: string, mounted: boolean): SandboxDisk => {
  const data = diskData(folder)
  return {
    folder,
    mounted,
    workspace: join(data, 'workspace'),
    home: join(data, 'home'),
    tmp: join(data, 'tmp'),
    shm: join(data, 'shm'),
  }
}

/** Makes the folders; with `mount`, on a sparse image of exactly the allowed bytes and files (15 ms, and no memory as with a tmpfs). */
export async function makeDisk(folder: string, limits: DiskLimits, mount: boolean): Promise<SandboxDisk> {
  const disk = diskAt(folder, mount)
  const data = diskData(folder)
  await mkdir(data, { recursive: true, mode: 0o700 })
  if (mount) await mountImage(folder, data, limits)
  for (const path of [disk.workspace, disk.home, disk.tmp, disk.shm]) await mkdir(path, { mode: 0o700 })
  return disk
}

async function mountImage(folder: string, data: string, limits: DiskLimits): Promise<void> {
  const image = join(folder, 'disk.img')
  const file = await open(image, 'wx', 0o600)
  // The file system's own tables come on top, so that what was promised can really be written.
  const tables = limits.files * 256 + limits.diskBytes / 32 + (4 << 20)
  await file.truncate(Math.ceil(limits.diskBytes + tables)).finally(() => file.close())
  // No journal: the disk ends with its sandbox. No reserve: nobody needs it.
  const format = ['-q', '-F', '-m', '0', '-N', String(limits.files + 16), '-O', '^has_journal']
  const options = [...format, '-E', 'lazy_itable_init=1,nodiscard']
  // Both by one shell: starting a process costs this one, with all the memory that it has, ten times as much as it costs a shell.
  await run('/bin/sh', ['-c', formatAndMount, 'tutti-mount', image, data, ...options], { env: systemEnv })
}

const formatAndMount = `
image=$1 data=$2
shift 2
mkfs.ext4 "$@" "$image" && exec mount -o loop,noatime,nosuid,nodev,discard "$image" "$data"
`

export const systemEnv = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }

/** Unmounts and removes. Idempotent. @throws TuttiError `unavailable` when the folder is still in use. */
export async function removeDisk(folder: string): Promise<void> {
  const data = diskData(folder)
  if (isMounted(data)) await run('umount', [data], { env: systemEnv }).catch(() => {})
  // Still busy (something outside looks into it): take it out of the tree now; the kernel frees it with its last user.
  if (isMounted(data)) await run('umount', ['-l', data], { env: systemEnv }).catch(() => {})
  if (isMounted(data)) {
    throw new TuttiError(
      'unavailable',
      `The sandbox folder ${data} cannot be unmounted; what uses it must end first.`,
      {
        path: data,
      },
    )
  }
  try {
    await rm(folder, { recursive: true, force: true })
  } catch {
    // Folders without permissions or deeper than a path can be: the system's rm walks by descriptor.
    await run('chmod', ['-R', 'u+rwX', '--', folder], { env: systemEnv }).catch(() => {})
    await run('rm', ['-rf', '--one-file-system', '--', folder], { env: systemEnv })
  }
}

function isMounted(path: string): boolean {
  // Spaces and the like are octal escapes in this file.
  const escaped = path.replace(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`)
  return readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${escaped} `)
}

/** Whether images can be mounted here, found by mounting one below `root`. */
export async function canMountDisk(root: string): Promise<boolean> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false
  const folder = join(root, passingName('probe'))
  try {
    await makeDisk(folder, { diskBytes: 4 << 20, files: 64 }, true)
    return true
  } catch {
    return false
  } finally {
    await removeDisk(folder).catch(() => {})
  }
}

/** Which limit a mounted disk has come up against. */
export function mountedLimitHit(disk: SandboxDisk): 'disk' | 'files' | undefined {
  try {
    const stats = statfsSync(diskData(disk.folder))
    if (stats.ffree === 0) return 'files'
    if (stats.bavail * stats.bsize < 64 << 10) return 'disk'
  } catch {
    // Unmounted meanwhile: what was seen before stands.
  }
  return undefined
}
