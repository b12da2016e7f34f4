import { reasons, type AgentId, type Attempt, type EnsembleId } from '@tutti/core'
import { isCandidate } from '@tutti/core'
import { decodeRunEvent, type DeliveryEvent, type EnsembleResult, type RunEvent } from '@tutti/protocol'
import type { EnsembleRow } from '@tutti/store'
import type { ConfigBlobs } from './config-blobs.ts'
import type { RecordPhase } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { openEnsemble } from './ensemble-mirror.ts'
import { findEqualGroups } from './gather.ts'
import { loadConflicts } from './report-conflicts.ts'

/** What an ensemble came to, from its log, its attempts and its mirror; the same whenever it is made. */
export async function makeEnsembleResult(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  input: RecordPhase,
  signal: AbortSignal,
): Promise<EnsembleResult> {
  const { ensembleId, owner } = input
  const config = await configs.ensemble(input.configBlobId, signal)
  const row = await deps.catalog.ensembles.get(owner, ensembleId, signal)
  const attempts = inOrder(row, await deps.catalog.attempts.list(ensembleId, signal))
  const agents = new Map(
    (
      await deps.catalog.agents.list(owner, { ensembleId }, { pageSize: 50, pageToken: '' }, signal)
    ).items.map((agent) => [agent.bcId, agent.agentSpec]),
  )
  const { events, timings } = await readLog(deps, ensembleId, signal)
  const delivery = events.findLast((event): event is DeliveryEvent => event.type === 'delivery')
  const commit = input.result?.finalCommit
  const check = events.findLast((event) => event.type === 'verified' && event.commit === commit)
  const conflicts = await loadConflicts(deps.blobs, input.result?.reportBlobId, signal)
  const groups = await equalGroups(deps, configs, input, attempts, signal)
  const included = creditAll(input.result?.included ?? [], groups)
  const delivered = delivery?.outcome === 'delivered' ? delivery : undefined
  return {
    ensemble_id: ensembleId,
    phase: input.phase,
    reason: input.reason ?? 'internal',
    attempts: attempts.map((attempt) => ({
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
          strategy: config.strategy,
          commit,
          branch: delivered?.branch ?? '',
          included,
          check:
            check?.type === 'verified' ? { exit_code: check.result.exitCode, tail: check.result.tail } : null,
        }
      : null,
    report: {
      conflicts: conflicts.map(({ path, kind, line, base, versions }) => ({
        path,
        kind,
        line,
        base,
        versions: versions.map(({ bcId, text }) => ({ bc_id: bcId, text })),
      })),
      equal_groups: groups,
      failures: attempts
        .filter((attempt) => isLeftOut(attempt, included))
        .map((attempt) => failureOf(attempt)),
    },
    pull_request: delivered?.pullRequest ? { ...delivered.pullRequest, branch: delivered.branch } : null,
    timings,
  }
}

/** Whoever made the same tree as an attempt in the result is in it too (ENS-06). */
const creditAll = (included: readonly AgentId[], groups: readonly (readonly AgentId[])[]): AgentId[] => [
  ...new Set([...included, ...groups.filter((group) => group.some((id) => included.includes(id))).flat()]),
]

const inOrder = (row: EnsembleRow, attempts: readonly Attempt[]): Attempt[] =>
  row.childIds.flatMap((bcId) => attempts.filter((attempt) => attempt.bcId === bcId))

/** Attempts that failed, and candidates that the check kept out of the result. */
const isLeftOut = (attempt: Attempt, included: readonly AgentId[]): boolean =>
  isCandidate(attempt)
    ? included.length > 0 &&
      !included.includes(attempt.bcId) &&
      attempt.check?.exitCode !== undefined &&
      attempt.check.exitCode !== 0
    : attempt.reason !== 'nothing_to_deliver'

function failureOf(attempt: Attempt) {
  const leftOut = isCandidate(attempt)
  return {
    bc_id: attempt.bcId,
    reason: leftOut ? ('check_failed' as const) : attempt.reason,
    message: leftOut
      ? 'Left out: the check fails with it.'
      : attempt.detail || reasons[attempt.reason].sentence,
    log: `tutti agent events ${attempt.bcId}`,
  }
}

async function equalGroups(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  input: RecordPhase,
  attempts: readonly Attempt[],
  signal: AbortSignal,
) {
  const candidates = attempts.filter(isCandidate)
  if (candidates.length < 2) return []
  const { mirror } = await openEnsemble(deps, configs, input, signal)
  return findEqualGroups(mirror, candidates, signal)
}

/** The events that are not a child's, and how long each phase took so far. */
async function readLog(deps: ActivityDeps, ensembleId: EnsembleId, signal: AbortSignal) {
  const events: RunEvent[] = []
  const timings: Record<string, number> = {}
  let current: { phase: string; since: number } | undefined
  const types = ['phase', 'verified', 'delivery']
  for (let from = 0; ;) {
    const page = await deps.eventLog.read(ensembleId, from, { types }, signal)
    for (const record of page.records) {
      const event = decodeRunEvent(record)
      events.push(event)
      if (event.type !== 'phase') continue
      if (current) timings[current.phase] = record.at - current.since
      current = { phase: event.phase, since: record.at }
    }
    if (page.next >= page.head.last || page.next === from) break
    from = page.next
  }
  if (current) timings[current.phase] = deps.clock.now() - current.since
  return { events, timings }
}
