import type { AgentStatus, DeliveryFailure, EnsembleId, AgentId, EnsemblePhase, Reason } from '@tutti/core'

/** What `tutti run -o json` prints and `GetEnsemble` answers; names as on the wire. */
export interface EnsembleResult {
  readonly ensemble_id: EnsembleId
  readonly phase: EnsemblePhase
  readonly reason: Reason
  readonly attempts: readonly AttemptResult[]
  readonly synthesis: SynthesisResult | null
  readonly report: MergeReport
  readonly pull_request: PullRequestResult | null
  /** Beside the reason `delivery_failed`: what stood in the way, and what to do; absent otherwise. */
  readonly delivery_failure?: DeliveryFailureResult
  /** What the stores have lost of it, and what to do; absent when it is whole. */
  readonly missing?: string
  /** Milliseconds spent in each phase, by name. */
  readonly timings: Readonly<Record<string, number>>
}

export interface AttemptResult {
  readonly bc_id: AgentId
  readonly status: AgentStatus
  readonly reason: Reason
  readonly commit: string
  readonly files_changed: number
  readonly check: { readonly exit_code: number | null } | null
  readonly agent: string
  readonly summary: string
}

export interface SynthesisResult {
  readonly strategy: string
  readonly commit: string
  readonly branch: string
  readonly included: readonly AgentId[]
  readonly check: { readonly exit_code: number | null; readonly tail: string } | null
}

/** What a person must know beside the diff. */
export interface MergeReport {
  readonly conflicts: readonly ConflictReport[]
  /** Groups of two or more attempts with the same tree. */
  readonly equal_groups: readonly (readonly AgentId[])[]
  /** Attempts with no usable result, and those that the check kept out. */
  readonly failures: readonly FailureReport[]
  /** Attempts that are not in the result, each with the sentence that says why. */
  readonly left_out: readonly { readonly bc_id: AgentId; readonly why: string }[]
}

/** A place where attempts disagree: the base was kept or, for a file new in both, the first version. */
export interface ConflictReport {
  readonly path: string
  /** `content`, `binary`, `modify_delete`, `mode`, `add_add` or `type`. */
  readonly kind: string
  /** Counts from 1 in the base. */
  readonly line: number
  readonly base: string
  readonly versions: readonly { readonly bc_id: AgentId; readonly text: string }[]
}

export interface FailureReport {
  readonly bc_id: AgentId
  readonly reason: Reason
  /** The end of the output that explains it, else a sentence. */
  readonly message: string
  /** The command that shows the log of the attempt. */
  readonly log_command: string
}

export interface DeliveryFailureResult {
  readonly failure: DeliveryFailure
  readonly detail: string
}

export interface PullRequestResult {
  readonly url: string
  readonly number: number
  readonly branch: string
}
