import type { AgentAdapter } from '@tutti/agent'
import type { AgentServer } from '@tutti/agent-server'
import type { BlobStore } from '@tutti/blob-store'
import type { Clock, CrashPoint, SandboxPolicy } from '@tutti/core'
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

/** A sandbox's agent server before there is a sandbox: what must be mounted for it, and how it is started. */
export interface PreparedServer {
  readonly readOnly: SandboxSpec['readOnly']
  /** Closing the server closes its egress proxy too. @throws TuttiError `unavailable` when it does not answer in time. */
  start(sandbox: Sandbox, signal: AbortSignal): Promise<AgentServer>
  /** Gives up what was prepared, when no server was started. Idempotent. */
  discard(): Promise<void>
}

/** Prepares the one program inside a sandbox and, for allowed hosts, its way out (design §3). */
export interface AgentServers {
  prepare(
    request: {
      /** Object folder of the source, which the sandbox reads; see `Mirror.sourceObjects`. */
      readonly sourceObjects: string
      readonly policy: SandboxPolicy
      readonly onDenied: (target: string) => void
    },
    signal: AbortSignal,
  ): Promise<PreparedServer>
}

/** Whether a turn waits for an answer. The question itself stays out of Temporal. */
export interface TurnWaiting {
  readonly turnId: string
  readonly waits: boolean
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
  /** Whether a path that changes is captured at once, where the sandbox can tell of it. */
  readonly watchWorkspace: boolean
  /** Milliseconds between captures while an agent works. */
  readonly captureIntervalMs: number
  /** Milliseconds between checkpoints while an agent works. */
  readonly checkpointIntervalMs: number
  /** Milliseconds that the last capture of a turn may take. */
  readonly captureTimeoutMs: number
  /** From SIGTERM to SIGKILL inside, in milliseconds. */
  readonly stopGraceMs: number
  /** Milliseconds that a sandbox has at a stop, beyond the grace, before it is killed. */
  readonly stopAnswerMs: number
  /** Milliseconds without an answer after which a sandbox is taken for lost. */
  readonly answerTimeoutMs: number
  /** Milliseconds after which a state is saved within a turn (design §4). */
  readonly stateIntervalMs: number
  /** The worker's own environment: where named variables of agents are resolved. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborts when the worker shuts down: running turns are handed over at once, not when Temporal's grace time is over. */
  readonly draining: AbortSignal
  /** Asks the idle agent to give its sandbox up for somebody who waits. */
  readonly askToRelease: (bcId: string) => Promise<void>
  /** Tells the agent's workflow whether this turn waits for an answer, for what it shows to operators. */
  readonly tellWaiting: (bcId: string, waiting: TurnWaiting) => Promise<void>
}
