import type { AgentId, Attempt, StrategyName } from '@tutti/core'

/** A group of attempts whose changes are the same. */
export type EqualGroup = readonly AgentId[]

/**
 * What to combine, in which order. The first alternative whose combined tree passes the check is taken; then each addition is
 * folded on top and kept only if the check still passes. Without a check command the first alternative is taken.
 */
export interface SynthesisPlan {
  readonly alternatives: readonly (readonly AgentId[])[]
  readonly additions: readonly AgentId[]
  /** Attempts that are not candidates, each with the sentence that says why. */
  readonly leftOut: readonly { readonly bcId: AgentId; readonly why: string }[]
}

export interface PlanRequest {
  readonly attempts: readonly Attempt[]
  /** Attempts with equal trees; found by the caller, since it needs git. */
  readonly equalGroups: readonly EqualGroup[]
}

/** Decides what becomes of the attempts; pure. */
export interface SynthesisStrategy {
  readonly name: StrategyName
  plan(request: PlanRequest): SynthesisPlan
}
