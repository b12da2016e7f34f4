import {
  isCandidate,
  type AgentId,
  type Attempt,
  type BlobId,
  type EnsembleConfig,
  type Reason,
} from '@tutti/core'
import type { MergeReport } from '@tutti/protocol'
import type { EnsembleRow } from '@tutti/store'
import { creditedAttempts, mergeReport } from '@tutti/synthesis'
import type { ConfigBlobs } from './config-blobs.ts'
import type { EnsembleScope } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { openEnsemble } from './ensemble-mirror.ts'
import { findEqualGroups } from './gather.ts'
import { loadConflicts } from './report-conflicts.ts'

/** What became of every attempt of an ensemble. */
export interface EnsembleOutcome {
  readonly config: EnsembleConfig
  readonly row: EnsembleRow
  /** In the children's order. */
  readonly attempts: readonly Attempt[]
  /** What is in the result; equal attempts are credited. */
  readonly included: readonly AgentId[]
  readonly report: MergeReport
}

/** Reads it from the catalog, the mirror and what `combine` reported; the same whenever it is read. */
export async function readOutcome(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  scope: EnsembleScope,
  combined: {
    readonly included?: readonly AgentId[]
    readonly reportBlobId?: BlobId
    /** How the ensemble ended, when it has. */
    readonly reason?: Reason | undefined
  },
  signal: AbortSignal,
): Promise<EnsembleOutcome> {
  const { ensembleId, owner } = scope
  const config = await configs.ensemble(scope.configBlobId, signal)
  const row = await deps.catalog.ensembles.get(owner, ensembleId, signal)
  const stored = await deps.catalog.attempts.list(ensembleId, signal)
  const attempts = row.childIds.flatMap((bcId) => stored.filter((attempt) => attempt.bcId === bcId))
  const candidates = attempts.filter(isCandidate)
  const equalGroups =
    candidates.length < 2
      ? []
      : await findEqualGroups((await openEnsemble(deps, configs, scope, signal)).mirror, candidates, signal)
  const included = combined.included ?? []
  const plan = deps.strategyOf(config.strategy).plan({ attempts, equalGroups })
  const conflicts = await loadConflicts(deps.blobs, combined.reportBlobId, signal)
  return {
    config,
    row,
    attempts,
    included: creditedAttempts(included, equalGroups),
    report: mergeReport({ attempts, equalGroups, plan, conflicts, included, reason: combined.reason }),
  }
}
