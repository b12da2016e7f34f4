import { isCandidate, reasons, type AgentId, type Attempt, type Reason } from '@tutti/core'
import type { EqualGroup, SynthesisPlan } from './port.ts'

/** A place where attempts disagreed and the base was kept (or, for a file new in both, the first version). */
export interface ReportedConflict {
  readonly path: string
  readonly kind: string
  /** Counts from 1 in the base. */
  readonly line: number
  readonly base: string
  readonly versions: readonly { readonly bc_id: AgentId; readonly text: string }[]
}

export interface ReportedFailure {
  readonly bc_id: AgentId
  readonly reason: Reason
  /** One sentence. */
  readonly why: string
  /** The end of the output that explains it; may be empty. */
  readonly detail: string
}

/** What a person must know beside the diff; the object `report` of the CLI's JSON, stored as it stands. */
export interface MergeReport {
  readonly conflicts: readonly ReportedConflict[]
  /** Groups of two or more attempts with the same tree. */
  readonly equal_groups: readonly EqualGroup[]
  /** Attempts that ended with no usable result. */
  readonly failures: readonly ReportedFailure[]
  /** Attempts that are not in the result, with the sentence that says why. */
  readonly left_out: readonly { readonly bc_id: AgentId; readonly why: string }[]
}

export interface MergeReportRequest {
  readonly attempts: readonly Attempt[]
  readonly equalGroups: readonly EqualGroup[]
  readonly plan: SynthesisPlan
  /** As `Mirror.combine` reported them. */
  readonly conflicts: readonly {
    readonly path: string
    readonly kind: string
    readonly line: number
    readonly base: string
    readonly versions: readonly { readonly bcId: AgentId; readonly text: string }[]
  }[]
  /** What is in the result; equal attempts of these count as in it. */
  readonly included: readonly AgentId[]
  /** Candidates that were tried and dropped, with the reason when it is known. */
  readonly dropped?: readonly { readonly bcId: AgentId; readonly why: string }[]
}

/** Puts together what became of every attempt. Pure. */
export function mergeReport(request: MergeReportRequest): MergeReport {
  const { attempts, plan, conflicts, included } = request
  const groups = request.equalGroups.filter((group) => group.length > 1)
  const covered = new Set(
    groups
      .filter((group) => group.some((id) => included.includes(id)))
      .flat()
      .concat(included),
  )
  const why = new Map([...plan.leftOut, ...(request.dropped ?? [])].map((entry) => [entry.bcId, entry.why]))
  return {
    conflicts: conflicts.map(({ path, kind, line, base, versions }) => ({
      path,
      kind,
      line,
      base,
      versions: versions.map(({ bcId, text }) => ({ bc_id: bcId, text })),
    })),
    equal_groups: groups,
    failures: attempts.filter(isFailure).map(({ bcId, reason, detail }) => ({
      bc_id: bcId,
      reason,
      why: reasons[reason].sentence,
      detail,
    })),
    left_out: attempts
      .filter(({ bcId }) => !covered.has(bcId))
      .map(({ bcId }) => ({ bc_id: bcId, why: why.get(bcId) ?? 'Another attempt was chosen.' })),
  }
}

/** Nothing to deliver is a normal end (ENS-07). */
const isFailure = (attempt: Attempt): boolean =>
  !isCandidate(attempt) && attempt.reason !== 'completed' && attempt.reason !== 'nothing_to_deliver'
