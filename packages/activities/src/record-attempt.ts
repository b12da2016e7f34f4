import type { AgentId, Attempt, CheckResult } from '@tutti/core'
import { appendToEnsemble } from './append-to-ensemble.ts'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail } from './fail.ts'
import { readEvents } from '@tutti/workspace/log'
import { childView } from './record-state.ts'
import type { Sessions } from './sessions.ts'

/** Stores what a child made as its ensemble's attempt, and shows it in the ensemble's stream. Called once, before the child ends. */
export function createRecordAttempt(deps: ActivityDeps, sessions: Sessions): Activities['recordAttempt'] {
  return (input) =>
    orFail(async () => {
      const { signal } = new AbortController()
      const { bcId, ensembleId, status, reason, detail } = input
      // A child that went on after its ensemble had ended changes nothing of that result.
      if ((await deps.eventLog.head(ensembleId, signal)).closed) return
      const row = await deps.catalog.agents.get(input.owner, bcId, signal)
      const check = row.commit ? await newestCheck(deps, bcId, row.commit, signal) : undefined
      const base = row.baseCommit ?? ''
      const attempt: Attempt = {
        bcId,
        status,
        reason,
        base,
        commit: row.commit ?? base,
        filesChanged: row.filesChanged,
        ...(check && { check }),
        summary: (sessions.find(bcId)?.summary ?? '').slice(0, 2048),
        detail: detail.slice(0, 4096),
      }
      await deps.catalog.attempts.put(ensembleId, attempt, signal)
      const child = {
        ...childView(row),
        status,
        reason,
        ...(check && { checkExitCode: check.exitCode }),
        ...(attempt.summary && { summary: attempt.summary }),
      }
      await appendToEnsemble(deps.eventLog, ensembleId, `attempt/${bcId}`, { type: 'child', child }, signal)
    })
}

/** The check of this very commit; one of an older checkpoint says nothing about it. */
async function newestCheck(
  { eventLog }: ActivityDeps,
  bcId: AgentId,
  commit: string,
  signal: AbortSignal,
): Promise<CheckResult | undefined> {
  let found: CheckResult | undefined
  for await (const { event } of readEvents(eventLog, bcId, ['check'], signal)) {
    if (event.commit === commit) found = event.result
  }
  return found
}
