import { isCandidate, reasons, type AgentId, type Attempt, type Reason } from '@tutti/core'
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
  /** How the ensemble ended; absent while it goes on. */
  readonly reason?: Reason | undefined
}

const droppedByCheck = 'Left out: the check fails with it.'

/** Puts together what became of every attempt. Pure. */
export function mergeReport(request: MergeReportRequest): MergeReport {
  const { attempts, plan, conflicts } = request
  const groups = request.equalGroups.filter((group) => group.length > 1)
  const credited = creditedAttempts(request.included, groups)
  const verdicts = verdictsOf(request, groups)
  const dropped = attempts.filter(
    ({ bcId }) =>
      plan.additions.includes(bcId) && !credited.includes(bcId) && verdicts.get(bcId) === droppedByCheck,
  )
  const why = new Map([...plan.leftOut.map((entry) => [entry.bcId, entry.why] as const), ...verdicts])
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

/**
 * Why each candidate that is not in the result is not, in one sentence: by the order in which `synthesize` follows the plan. An
 * attempt with an equal tree shares the verdict of the one that was tried.
 */
function verdictsOf(
  { plan, included, reason }: MergeReportRequest,
  groups: readonly EqualGroup[],
): ReadonlyMap<AgentId, string> {
  const verdicts = new Map<AgentId, string>()
  const set = (ids: readonly AgentId[], why: string) => {
    for (const id of ids) {
      const group = groups.find((members) => members.includes(id)) ?? [id]
      for (const member of group) verdicts.set(member, why)
    }
  }
  const { alternatives, additions } = plan
  if (included.length > 0) {
    const chosen = alternatives.findIndex((ids) => ids.every((id) => included.includes(id)))
    alternatives.forEach((ids, index) =>
      set(ids, index < chosen ? droppedByCheck : 'Another attempt was chosen.'),
    )
    set(additions, droppedByCheck)
  } else if (reason === 'check_failed') {
    for (const ids of alternatives) {
      set(
        ids,
        ids.length === 1
          ? droppedByCheck
          : `None was chosen: the check fails with all ${ids.length} attempts together.`,
      )
    }
    set(additions, 'Not tried: the check fails without it already.')
  } else {
    const why =
      reason === undefined
        ? 'Nothing has been chosen yet.'
        : `None was chosen: it ended before that was decided. ${reasons[reason].sentence}`
    set([...alternatives.flat(), ...additions], why)
  }
  return verdicts
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
