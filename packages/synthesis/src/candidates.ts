import { isCandidate, reasons, type AgentId, type Attempt } from '@tutti/core'
import type { PlanRequest, SynthesisPlan } from './port.ts'

/** Attempts that can be combined, each tree once, in the order of the request. */
export function distinctCandidates({ attempts, equalGroups }: PlanRequest): readonly Attempt[] {
  const candidates = attempts.filter(isCandidate)
  const repeated = new Set<AgentId>()
  for (const group of equalGroups) {
    const [, ...others] = candidates.filter(({ bcId }) => group.includes(bcId))
    for (const { bcId } of others) repeated.add(bcId)
  }
  return candidates.filter(({ bcId }) => !repeated.has(bcId))
}

/** Every attempt that is no candidate, with one sentence. */
export function leftOut(attempts: readonly Attempt[]): SynthesisPlan['leftOut'] {
  return attempts
    .filter((attempt) => !isCandidate(attempt))
    .map((attempt) => ({ bcId: attempt.bcId, why: whyNot(attempt) }))
}

function whyNot(attempt: Attempt): string {
  if (attempt.reason === 'completed') {
    return attempt.commit === attempt.base
      ? reasons.nothing_to_deliver.sentence
      : 'It had not come to rest when the attempts were gathered.'
  }
  return reasons[attempt.reason].sentence
}
