import type { AgentStatus, EnsembleId, AgentId, EnsemblePhase, Reason } from '@tutti/core'

/** What `tutti run -o json` prints and `GetEnsemble` answers; names as on the wire. */
export interface EnsembleResult {
  readonly ensemble_id: EnsembleId
  readonly phase: EnsemblePhase
  readonly reason: Reason
  readonly attempts: readonly AttemptResult[]
  readonly synthesis: SynthesisResult | null
  readonly report: MergeReport
  readonly pull_request: PullRequestResult | null
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

export interface MergeReport {
  readonly conflicts: readonly ConflictReport[]
  readonly equal_groups: readonly (readonly AgentId[])[]
  readonly failures: readonly FailureReport[]
}

export interface ConflictReport {
  readonly path: string
  readonly kind: string
  readonly line: number
  readonly base: string
  readonly versions: readonly { readonly bc_id: AgentId; readonly text: string }[]
}

export interface FailureReport {
  readonly bc_id: AgentId
  readonly reason: Reason
  readonly message: string
  /** The command that shows the log of the attempt. */
  readonly log: string
}

export interface PullRequestResult {
  readonly url: string
  readonly number: number
  readonly branch: string
}
