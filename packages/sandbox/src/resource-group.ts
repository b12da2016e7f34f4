import type { SandboxLimits } from '@tutti/core'
import type { LimitName } from './port.ts'

export type LimiterKind = 'cgroup-v1' | 'cgroup-v2' | 'systemd-run' | 'watchdog'

/** What holds all processes of one sandbox and limits them together. */
export interface ResourceGroup {
  readonly kind: LimiterKind
  /** Folders to write in the state file, so that another process can end the group. */
  readonly folders: readonly string[]
  /** Put before a program's argv so that it starts in the group. */
  readonly prefix: readonly string[]
  processes(): number[]
  /** Which of its limits was hit so far. */
  limitHit(): Extract<LimitName, 'memory' | 'pids'> | undefined
  /** Removes the group itself. Its processes are gone by then. */
  remove(): void
}

/** Makes groups of one kind; which kind works on this machine is found by trying. */
export interface ResourceLimiter {
  readonly kind: LimiterKind
  /** For `doctor`: what this kind cannot do here. */
  readonly note: string
  createGroup(id: string, limits: SandboxLimits): ResourceGroup
}
