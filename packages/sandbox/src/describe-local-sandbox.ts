import { mkdir } from 'node:fs/promises'
import { probeBubblewrap } from './bubblewrap-probe.ts'
import { pickLimiter } from './pick-limiter.ts'
import type { LimiterKind } from './resource-group.ts'
import { canMountDisk } from './sandbox-disk.ts'

/** What local sandboxes can do on this machine, for `doctor`. Everything was found by doing it. */
export interface LocalSandboxDescription {
  readonly bubblewrap:
    | { readonly works: true; readonly version: string }
    | { readonly works: false; readonly problem: string; readonly remedy: string }
  readonly limiter: LimiterKind
  /** What the limiter limits, and what would be better where it is not the kernel's. */
  readonly limiterNote: string
  readonly disk: 'mount' | 'watchdog'
  readonly diskNote: string
}

/** What limits the disk of a sandbox on this host, and what would be better where it is not the kernel. */
export const diskNotes = {
  mount: 'bytes and files of a sandbox are limited by a file system of that size',
  watchdog:
    'bytes and files of a sandbox are measured every second and it is killed above its limit (as root with e2fsprogs, the kernel limits them)',
} as const

/** Tries what `createLocalSandboxes` with this root would use. Takes about 100 ms; leaves nothing behind. */
export async function describeLocalSandbox(options: {
  readonly root: string
  readonly bubblewrapPath?: string
}): Promise<LocalSandboxDescription> {
  await mkdir(options.root, { recursive: true, mode: 0o700 })
  const [support, mount] = await Promise.all([
    probeBubblewrap(options.bubblewrapPath),
    canMountDisk(options.root),
  ])
  const limiter = pickLimiter()
  const disk = mount ? 'mount' : 'watchdog'
  return {
    bubblewrap: support.works
      ? { works: true, version: support.version }
      : { works: false, problem: support.problem, remedy: support.remedy },
    limiter: limiter.kind,
    limiterNote: limiter.note,
    disk,
    diskNote: diskNotes[disk],
  }
}
