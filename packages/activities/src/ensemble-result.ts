import { limits, type EnsembleId } from '@tutti/core'
import type { DeliveryEvent, EnsembleResult } from '@tutti/protocol'
import type { ConfigBlobs } from './config-blobs.ts'
import type { RecordPhase } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { readOutcome } from './ensemble-outcome.ts'
import { newestVerification } from './newest-verification.ts'
import { readEvents } from '@tutti/workspace/log'

/** What an ensemble came to, from its log, its attempts and its mirror; the same whenever it is made. */
export async function makeEnsembleResult(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  input: RecordPhase,
  signal: AbortSignal,
): Promise<EnsembleResult> {
  const { ensembleId, owner } = input
  const outcome = await readOutcome(deps, configs, input, { ...input.result, reason: input.reason }, signal)
  const agents = new Map(
    (
      await deps.catalog.agents.list(
        owner,
        { ensembleId },
        { pageSize: limits.maxChildren, pageToken: '' },
        signal,
      )
    ).items.map((agent) => [agent.bcId, agent.agentSpec]),
  )
  const { delivery, timings } = await readLog(deps, ensembleId, signal)
  const commit = input.result?.finalCommit
  const check = commit ? await newestVerification(deps.eventLog, ensembleId, commit, signal) : undefined
  const delivered = delivery?.outcome === 'delivered' ? delivery : undefined
  return {
    ensemble_id: ensembleId,
    phase: input.phase,
    reason: input.reason ?? 'internal',
    attempts: outcome.attempts.map((attempt) => ({
      bc_id: attempt.bcId,
      status: attempt.status,
      reason: attempt.reason,
      commit: attempt.commit,
      files_changed: attempt.filesChanged,
      check: attempt.check ? { exit_code: attempt.check.exitCode } : null,
      agent: agents.get(attempt.bcId) ?? '',
      summary: attempt.summary,
    })),
    synthesis: commit
      ? {
          strategy: outcome.config.strategy,
          commit,
          branch: delivered?.branch ?? '',
          included: outcome.included,
          check: check ? { exit_code: check.exitCode, tail: check.tail } : null,
        }
      : null,
    report: outcome.report,
    pull_request: delivered?.pullRequest ? { ...delivered.pullRequest, branch: delivered.branch } : null,
    ...(delivery?.outcome === 'failed' && {
      delivery_failure: { failure: delivery.failure, detail: delivery.detail },
    }),
    timings,
  }
}

/** The newest delivery, and how long each phase took so far. */
async function readLog({ eventLog, clock }: ActivityDeps, ensembleId: EnsembleId, signal: AbortSignal) {
  const timings: Record<string, number> = {}
  let delivery: DeliveryEvent | undefined
  let current: { phase: string; since: number } | undefined
  for await (const { event, at } of readEvents(eventLog, ensembleId, ['phase', 'delivery'], signal)) {
    if (event.type === 'delivery') {
      delivery = event
      continue
    }
    if (current) timings[current.phase] = at - current.since
    current = { phase: event.phase, since: at }
  }
  if (current) timings[current.phase] = clock.now() - current.since
  return { delivery, timings }
}
