import type { IgnoredPolicy } from './ignored-policy.ts'

/** What the host tells the agent server in its first call. Paths are inside. */
export interface InsideSettings {
  readonly workdir: string
  readonly home: string
  /** The object folder of the source, mounted read-only. */
  readonly sourceObjects: string
  /** From SIGTERM to SIGKILL, in milliseconds. */
  readonly stopGraceMs: number
  /** Whether every visible process belongs to this sandbox. */
  readonly isolated: boolean
  readonly maxFileBytes: number
  readonly ignored: IgnoredPolicy
  /** The host's egress proxy; absent when the sandbox has no network or all of it. */
  readonly egressSocket?: string
}
