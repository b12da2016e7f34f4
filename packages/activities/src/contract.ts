import type {
  AgentId,
  AgentState,
  AgentStatus,
  BlobId,
  EnsembleId,
  EnsemblePhase,
  Interruption,
  Reason,
  Turn,
} from '@tutti/core'

/** Who works, in which sandbox life. On every activity that touches an agent. */
export interface AgentScope {
  readonly bcId: AgentId
  readonly owner: string
  readonly configBlobId: BlobId
  readonly incarnation: number
  /** Turns that the agent has begun in its life. For traces and log lines only, as the next one. */
  readonly turns?: number
  /** The ensemble that made the agent, also after it has left that. */
  readonly memberOf?: EnsembleId
}

/** An event that a workflow wants in the log; small, since it travels through Temporal. */
export type WorkflowEvent =
  | { readonly type: 'session_start' }
  | { readonly type: 'user_message'; readonly turn: Turn }
  | {
      readonly type: 'status'
      readonly status: AgentStatus
      readonly paused: boolean
      readonly reason?: Reason
      readonly queued: number
      readonly hadSandbox: boolean
    }
  | {
      readonly type: 'turn_interrupted'
      readonly turnId: string
      readonly restart: number
      /** The one that was lost; by the time this is written there may be another. Absent: the one of the snapshot. */
      readonly incarnation?: number
      readonly reason?: Interruption
    }
  | {
      readonly type: 'turn_ended'
      readonly turnId: string
      readonly reason: Reason
      readonly detail?: string
    }
  | {
      readonly type: 'recovery_failed'
      readonly requestId: string
      readonly reason: Reason
      readonly detail?: string
    }
  | { readonly type: 'session_close'; readonly reason: Reason }

/** Appends the events and writes the projection that belongs to them; idempotent by (runId, sequence). */
export interface RecordState {
  readonly bcId: AgentId
  readonly owner: string
  readonly configBlobId: BlobId
  readonly ensembleId?: EnsembleId
  readonly memberOf?: EnsembleId
  readonly runId: string
  readonly sequence: number
  readonly events: readonly WorkflowEvent[]
  readonly state: AgentState
  readonly turns: number
  readonly incarnation: number
  readonly hadSandbox: boolean
}

export interface AdmitResult {
  /** Task queue of the host where the agent's sandbox will live. */
  readonly hostQueue: string
}

export interface TurnInput extends AgentScope {
  readonly turn: Turn
  /** Number of this turn in the agent's life, from 1. */
  readonly number: number
  /** Milliseconds that the turn may still take. */
  readonly timeoutMs: number
  readonly heartbeatMs: number
  /** The turn was cut off before and goes on. */
  readonly continued: boolean
}

export interface TurnResult {
  readonly reason: Reason
  readonly failed: boolean
  /** For a person; at most 1 KiB here, more of it is in the log. */
  readonly detail?: string
}

export interface CheckpointResult {
  readonly commit: string
  readonly filesChanged: number
}

export interface CheckOutcome {
  readonly exitCode: number | null
}

/** The parts of a child's end that its parent knows even when the child could not record anything. */
export interface ChildEnd {
  readonly bcId: AgentId
  readonly status: 'IDLE' | 'ERROR' | 'ARCHIVED' | 'EXPIRED'
  readonly reason: Reason
}

export interface EnsembleScope {
  readonly ensembleId: EnsembleId
  readonly owner: string
  readonly configBlobId: BlobId
}

/** Appends a phase to the ensemble's log and projects it; idempotent by (runId, sequence). */
export interface RecordPhase extends EnsembleScope {
  readonly runId: string
  readonly sequence: number
  readonly phase: EnsemblePhase
  readonly reason?: Reason
  readonly detail?: string
  /** With the last phase: makes and stores the result. */
  readonly result?: {
    readonly finalCommit?: string
    readonly included?: readonly AgentId[]
    readonly reportBlobId?: BlobId
  }
}

export interface GatherResult {
  readonly candidates: number
  /** Attempts that ended well but changed nothing. */
  readonly unchanged: number
  readonly alternatives: readonly (readonly AgentId[])[]
  readonly additions: readonly AgentId[]
}

export interface CombineResult {
  readonly commit: string
  readonly conflicts: number
  /** Everything about the combination: conflicts with their texts. */
  readonly reportBlobId: BlobId
}

export interface DeliverResult {
  readonly outcome: 'delivered' | 'nothing_to_deliver' | 'failed'
}

/** The activities by their registered names; implemented by the factories of this package. */
export interface Activities {
  recordState(input: RecordState): Promise<void>
  /** Waits for a slot; its place in the queue is visible meanwhile. */
  admit(
    input: AgentScope & { readonly ensembleId?: EnsembleId; readonly heartbeatMs: number },
  ): Promise<AdmitResult>
  /** Gives the slot or the place in the queue back, when no host worker can do it any more. */
  releaseLease(input: AgentScope): Promise<void>
  provisionSandbox(
    input: AgentScope & {
      readonly branch: string
      readonly deadlineMs: number
      readonly heartbeatMs: number
      /** It is made because somebody asked for it; `at`: with the workspace of this log position. */
      readonly recovery?: { readonly requestId: string; readonly at?: number }
    },
  ): Promise<void>
  runTurn(input: TurnInput): Promise<TurnResult>
  checkpointTurn(
    input: AgentScope & { readonly turnId: string; readonly heartbeatMs: number },
  ): Promise<CheckpointResult>
  checkAttempt(input: AgentScope & { readonly heartbeatMs: number }): Promise<CheckOutcome>
  releaseSandbox(input: AgentScope): Promise<void>
  /** Stores what a child made, for its ensemble. */
  recordAttempt(
    input: AgentScope & {
      readonly ensembleId: EnsembleId
      readonly status: ChildEnd['status']
      readonly reason: Reason
      readonly detail: string
    },
  ): Promise<void>
  deliverAgent(
    input: AgentScope & { readonly requestId: string; readonly planBlobId?: BlobId },
  ): Promise<DeliverResult>
  recordPhase(input: RecordPhase): Promise<void>
  gather(input: EnsembleScope & { readonly children: readonly ChildEnd[] }): Promise<GatherResult>
  combine(input: EnsembleScope & { readonly attempts: readonly AgentId[] }): Promise<CombineResult>
  verify(
    input: EnsembleScope & { readonly commit: string; readonly heartbeatMs: number },
  ): Promise<CheckOutcome>
  deliver(
    input: EnsembleScope & {
      readonly commit: string
      readonly included: readonly AgentId[]
      readonly reportBlobId: BlobId
    },
  ): Promise<DeliverResult>
}
