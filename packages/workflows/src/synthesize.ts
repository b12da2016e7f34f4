import type { Activities, CombineResult, EnsembleScope, GatherResult } from '@tutti/activities'
import type { AgentId } from '@tutti/core'
import { proxyActivities } from '@temporalio/workflow'
import type { ParallelAgentsInput } from './contract.ts'
import { profilesOf } from './profiles.ts'

/** A combined tree that may be delivered. */
export interface Synthesis extends CombineResult {
  readonly included: readonly AgentId[]
}

/**
 * Follows the strategy's plan: the first alternative whose combined tree passes the check is taken, then each addition that does
 * not break it. Undefined when nothing passed. Without a check command the first alternative is taken.
 */
export async function synthesize(
  input: ParallelAgentsInput,
  scope: EnsembleScope,
  plan: GatherResult,
): Promise<Synthesis | undefined> {
  const profiles = profilesOf(input.timings.heartbeatMs)
  const { combine } = proxyActivities<Activities>({ ...profiles.git, summary: 'combine the attempts' })
  const { verify } = proxyActivities<Activities>({
    ...profiles.verify,
    summary: 'check the combined tree in a fresh sandbox',
  })

  const tryTogether = async (included: readonly AgentId[]): Promise<Synthesis | undefined> => {
    const combined = await combine({ ...scope, attempts: included })
    if (!input.hasCheck) return { ...combined, included }
    const { exitCode } = await verify({
      ...scope,
      commit: combined.commit,
      heartbeatMs: input.timings.heartbeatMs,
    })
    return exitCode === 0 ? { ...combined, included } : undefined
  }

  let best: Synthesis | undefined
  for (const alternative of plan.alternatives) {
    best = await tryTogether(alternative)
    if (best) break
  }
  if (!best) return undefined
  for (const addition of plan.additions) {
    best = (await tryTogether([...best.included, addition])) ?? best
  }
  return best
}
