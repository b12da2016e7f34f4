import { isCandidate, reasons, type AgentId, type Attempt } from '@tutti/core'
import type { ConflictReport, FailureReport, MergeReport } from '@tutti/protocol'
import type { EqualGroup, SynthesisPlan } from './port.ts'

export interface MergeReportRequest {
  readonly attempts: readonly Attempt[]
  readonly equalGroups: readonly EqualGroup[]
  readonly plan: SynthesisPlan
  /** As `Mirror.combine` reported them. */
  readonly conflicts: readonly (Omit<ConflictReport, 'versions'> & {
    readonly versions: readonly { readonly bcId: AgentId; readonly text: string }[]
  })[]
  /** What was combined; equal attempts of these count as in it. Empty when there is no result. */
  readonly included: readonly AgentId[]
}

const droppedByCheck = 'Left out: the check fails with it.'

/** Puts together what became of every attempt. Pure. */
export function mergeReport(request: MergeReportRequest): MergeReport {
  const { attempts, plan, conflicts } = request
  const groups = request.equalGroups.filter((group) => group.length > 1)
  const credited = creditedAttempts(request.included, groups)
  const dropped = attempts.filter(
    (attempt) =>
      isCandidate(attempt) && plan.additions.includes(attempt.bcId) && !credited.includes(attempt.bcId),
  )
  const why = new Map(plan.leftOut.map((entry) => [entry.bcId, entry.why]))
  for (const { bcId } of dropped) why.set(bcId, droppedByCheck)
  return {
    conflicts: conflicts.map(({ versions, ...place }) => ({
      ...place,
      versions: versions.map(({ bcId, text }) => ({ bc_id: bcId, text })),
    })),
    equal_groups: groups,
    failures: attempts.flatMap((attempt) => {
      if (dropped.includes(attempt)) return [failureOf(attempt, 'check_failed', droppedByCheck)]
      return isFailure(attempt) ? [failureOf(attempt, attempt.reason, attempt.detail)] : []
    }),
    left_out: attempts
      .filter(({ bcId }) => !credited.includes(bcId))
      .map(({ bcId }) => ({ bc_id: bcId, why: why.get(bcId) ?? 'Another attempt was chosen.' })),
  }
}

/** Whoever made the same tree as an attempt in the result is in it too (ENS-06). */
export function creditedAttempts(
  included: readonly AgentId[],
  groups: readonly EqualGroup[],
): readonly AgentId[] {
  const equal = groups.filter((group) => group.some((id) => included.includes(id))).flat()
  return [...new Set([...included, ...equal])]
}

function failureOf({ bcId }: Attempt, reason: Attempt['reason'], detail: string): FailureReport {
  const message = detail.trim() === '' ? reasons[reason].sentence : detail
  return { bc_id: bcId, reason, message, log_command: `tutti agent events ${bcId}` }
}

/** Nothing to deliver is a normal end (ENS-07). */
const isFailure = (attempt: Attempt): boolean =>
  !isCandidate(attempt) && attempt.reason !== 'completed' && attempt.reason !== 'nothing_to_deliver'
