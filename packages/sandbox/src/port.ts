import type { SandboxPolicy } from '@tutti/core'

/** What to make. `key` makes creation idempotent: the same key gives the same sandbox while it lives. */
export interface SandboxSpec {
  /** `{holder}/{incarnation}`. */
  readonly key: string
  readonly owner: string
  readonly policy: SandboxPolicy
  /** Resolved environment of the agent, names to values; never logged, never in argv. */
  readonly env: Readonly<Record<string, string>>
  /** Host folders that are mounted read-only at a given path inside: the mirror, the runner, the pinned Node. */
  readonly readOnly: readonly { readonly host: string; readonly inside: string }[]
}

/** Names a sandbox for later: plain JSON. */
export interface SandboxRef {
  readonly provider: string
  readonly key: string
  readonly id: string
}

export interface ExecRequest {
  /** Program and arguments; never a shell line. */
  readonly argv: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** What a sandbox can run out of; the setting `sandbox.NAME` has the limit. */
export type LimitName = 'memory' | 'pids' | 'disk' | 'files' | 'file_size'

export interface ExecExit {
  readonly code: number | null
  readonly signal?: string
  /** The limit that ended it, when one did. */
  readonly limit?: LimitName
}

/** A running process inside. Streams end when it has ended. */
export interface Exec {
  readonly stdout: AsyncIterable<Uint8Array>
  readonly stderr: AsyncIterable<Uint8Array>
  /** Resolves when the bytes are handed over; waits while the process does not read. */
  write(bytes: Uint8Array): Promise<void>
  closeStdin(): Promise<void>
  kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
  readonly exit: Promise<ExecExit>
}

/** One living sandbox. */
export interface Sandbox {
  readonly ref: SandboxRef
  /** The workspace's path inside. */
  readonly workdir: string
  /** A private writable folder inside that is not part of the workspace. */
  readonly home: string
  /** When the provider will end it, if it does; milliseconds since the epoch. Its work is moved to another one before. */
  readonly expiresAt?: number
  /** True when processes inside see only each other: their pid namespace is their own. */
  readonly isolated: boolean
  /** The pinned Node inside, so that the agent server needs none of the system's. */
  readonly nodePath: string
  /** Where processes inside find what `SandboxSpec.readOnly` mounted at that path; the host's path without isolation. */
  pathOf(inside: string): string
  /**
   * Starts a program. An isolating provider runs exactly one per sandbox, its main process, and the sandbox ends with it: the agent
   * server, which runs everything else inside. @throws TuttiError `failed_precondition` for a second one there, `not_found` when
   * there is no such program, `unavailable` when the sandbox is gone.
   */
  exec(request: ExecRequest, signal: AbortSignal): Promise<Exec>
  /** Bootstrap only: before the first exec, as the host never writes where an agent is at work. Paths are absolute, inside. */
  put(
    files: readonly { readonly path: string; readonly bytes: Uint8Array; readonly mode: number }[],
    signal: AbortSignal,
  ): Promise<void>
  /** For diagnostics: a file below `workdir` or `home`, at most `maxBytes` of it; follows no link. @throws TuttiError `not_found`. */
  get(path: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array>
  /** `unknown` is not `gone`. */
  alive(signal: AbortSignal): Promise<'running' | 'gone' | 'unknown'>
  /** The first limit that was hit so far, for the reason `resource_limit`. */
  limitHit(): LimitName | undefined
  /** The kernel holds its disk to the limits. Otherwise it is on one of the host's, and when that is full none of its limits need be reached. */
  readonly hasOwnDisk: boolean
  /** Where no kernel holds its disk to the limits, looks now whether it is above one; it ends then, as it would a little later. */
  measureDisk(): Promise<Extract<LimitName, 'disk' | 'files'> | undefined>
}

/** Makes disposable places where a workspace is hydrated and commands run (design §1). */
export interface SandboxProvider {
  readonly name: string
  /** @throws TuttiError `failed_precondition` when the isolation asked for cannot be had, with what to install. */
  create(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox>
  /** The living sandbox of a ref, or null when it is gone for good. */
  attach(ref: SandboxRef, signal: AbortSignal): Promise<Sandbox | null>
  /** Every sandbox of this provider on this host, for the reaper; also those of a dead process. */
  list(owner: string | undefined, signal: AbortSignal): Promise<readonly SandboxRef[]>
  /** Ends every process, removes every mount and folder. Idempotent; done when nothing is left. */
  destroy(ref: SandboxRef, signal: AbortSignal): Promise<void>
}

/** A provider whose sandboxes are on this host and live no longer than the process that made them. */
export interface HostSandboxProvider extends SandboxProvider {
  /** Ends every sandbox under its root whose maker process is dead. Returns what was ended. For the start and the reaper. */
  reap(signal: AbortSignal): Promise<readonly SandboxRef[]>
  /** Kills and removes every sandbox of this process at once. Synchronous: the process exits next. */
  kill(): void
}
