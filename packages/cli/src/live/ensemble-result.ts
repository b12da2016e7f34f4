import type { AgentId, DeliveryFailure, EnsembleId, Reason } from '@tutti/core'
import type { Ensemble } from '@tutti/proto'
import type { EnsembleResult } from '@tutti/protocol'
import { phaseFromWire, workflowStatusFromWire } from '@tutti/protocol/wire'

/** A check that was killed has no exit code; the wire says it with a negative one. */
const exitCode = (check: { readonly exitCode: number }): number | null =>
  check.exitCode < 0 ? null : check.exitCode

/** What `tutti run -o json` prints, from what GetEnsemble answers. */
export function ensembleResult(ensemble: Ensemble): EnsembleResult {
  const { synthesis, report, pullRequest } = ensemble
  const ids = (list: readonly string[]) => list as readonly AgentId[]
  return {
    ensemble_id: ensemble.ensembleId as EnsembleId,
    phase: phaseFromWire(ensemble.phase),
    reason: ensemble.reason as Reason,
    attempts: ensemble.attempts.map((attempt) => ({
      bc_id: attempt.bcId as AgentId,
      status: workflowStatusFromWire(attempt.workflowStatus),
      reason: attempt.reason as Reason,
      commit: attempt.commit,
      files_changed: attempt.filesChanged,
      check: attempt.check ? { exit_code: exitCode(attempt.check) } : null,
      agent: attempt.agent,
      summary: attempt.summary,
    })),
    synthesis: synthesis
      ? {
          strategy: synthesis.strategy,
          commit: synthesis.commit,
          branch: synthesis.branch,
          included: ids(synthesis.bcIds),
          check: synthesis.check
            ? { exit_code: exitCode(synthesis.check), tail: synthesis.check.outputTail }
            : null,
        }
      : null,
    report: {
      conflicts: (report?.conflicts ?? []).map((conflict) => ({
        path: conflict.path,
        kind: conflict.kind,
        line: conflict.line,
        base: conflict.baseText,
        versions: conflict.versions.flatMap(({ bcIds, text }) =>
          ids(bcIds).map((bcId) => ({ bc_id: bcId, text })),
        ),
      })),
      equal_groups: (report?.equalGroups ?? []).map((group) => ids(group.bcIds)),
      failures: (report?.failures ?? []).map((failure) => ({
        bc_id: failure.bcId as AgentId,
        reason: failure.reason as Reason,
        message: failure.message,
        log_command: failure.logCommand,
      })),
      left_out: (report?.leftOut ?? []).map(({ bcId, why }) => ({ bc_id: bcId as AgentId, why })),
    },
    pull_request: pullRequest
      ? { url: pullRequest.url, number: Number(pullRequest.number), branch: pullRequest.branch }
      : null,
    ...(ensemble.deliveryFailure !== '' && {
      delivery_failure: {
        failure: ensemble.deliveryFailure as DeliveryFailure,
        detail: ensemble.deliveryDetail,
      },
    }),
    ...(ensemble.missing !== '' && { missing: ensemble.missing }),
    timings: phaseTimes(ensemble),
  }
}

/** Milliseconds in each phase, by name; the last phases are points in time and have none. */
export function phaseTimes({ phases }: Ensemble): Record<string, number> {
  const times: Record<string, number> = {}
  phases.forEach(({ phase, startedAtMs }, index) => {
    const next = phases[index + 1]
    if (next) times[phaseFromWire(phase)] = Number(next.startedAtMs - startedAtMs)
  })
  return times
}
