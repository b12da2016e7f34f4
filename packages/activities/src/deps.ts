import type { AgentAdapter } from '@tutti/agent'
import type { AgentServer } from '@tutti/agent-server'
import type { BlobStore } from '@tutti/blob-store'
import type { Clock, CrashPoint } from '@tutti/core'
import type { Forge } from '@tutti/forge'
import type { Mirrors } from '@tutti/git'
import type { Sandbox, SandboxProvider, SandboxSpec } from '@tutti/sandbox'
import type { Catalog, EventLog } from '@tutti/store'
import type { SynthesisStrategy } from '@tutti/synthesis'

/** A line for the server's log. */
export interface ActivityLog {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
}

/** Makes the read-only mounts of a sandbox and starts the one program inside (design §3). */
export interface AgentServers {
  /** What must be mounted for the agent server: the runner, the pinned Node, the mirror's objects. */
  mounts(mirrorPath: string): SandboxSpec['readOnly']
  /** @throws TuttiError `unavailable` when it does not answer in time. */
  start(sandbox: Sandbox, mirrorPath: string, spec: SandboxSpec, signal: AbortSignal): Promise<AgentServer>
}

/** Everything that activities use; put together by the worker. */
export interface ActivityDeps {
  readonly eventLog: EventLog
  readonly catalog: Catalog
  readonly blobs: BlobStore
  readonly mirrors: Mirrors
  readonly sandboxes: SandboxProvider
  readonly agentServers: AgentServers
  readonly adapters: ReadonlyMap<string, AgentAdapter>
  readonly forge: Forge
  /** @throws TuttiError `invalid_argument` for an unknown name. */
  readonly strategyOf: (name: string) => SynthesisStrategy
  readonly clock: Clock
  readonly crashPoint: CrashPoint
  readonly log: ActivityLog
  /** This host's name and its task queue. */
  readonly host: string
  readonly hostQueue: string
  readonly maxSandboxes: number
  /** Milliseconds between captures while an agent works. */
  readonly captureIntervalMs: number
  /** The worker's own environment: where named variables of agents are resolved. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Asks the idle agent to give its sandbox up for somebody who waits. */
  readonly askToRelease: (bcId: string) => Promise<void>
}
