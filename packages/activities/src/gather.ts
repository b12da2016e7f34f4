import { isCandidate, type AgentId, type Attempt } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import type { EqualGroup } from '@tutti/synthesis'
import { cancellationSignal } from './cancellation.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities, ChildEnd } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { openEnsemble } from './ensemble-mirror.ts'
import { orFail } from './fail.ts'

/** Collects the attempts of all children and asks the strategy what to do with them. Changes nothing but what is missing. */
export function createGather(deps: ActivityDeps, configs: ConfigBlobs): Activities['gather'] {
  return (input) =>
    orFail(async () => {
      const signal = cancellationSignal()
      const attempts = await deps.crashPoint('ensemble.gather', () =>
        completeAttempts(deps, input.ensembleId, input.children, signal),
      )
      const candidates = attempts.filter(isCandidate)
      const unchanged = attempts.filter((attempt) => attempt.reason === 'nothing_to_deliver').length
      if (candidates.length === 0) return { candidates: 0, unchanged, alternatives: [], additions: [] }
      const { config, mirror, location } = await openEnsemble(deps, configs, input, signal)
      for (const { commit } of candidates) await deps.mirrors.restore(location, commit, signal)
      const equalGroups = await findEqualGroups(mirror, candidates, signal)
      const { alternatives, additions } = deps.strategyOf(config.strategy).plan({ attempts, equalGroups })
      return { candidates: candidates.length, unchanged, alternatives, additions }
    })
}

/** Every child has an attempt, in the children's order: one that could not record its own gets one that says how it ended. */
async function completeAttempts(
  { catalog }: ActivityDeps,
  ensembleId: Parameters<Activities['gather']>[0]['ensembleId'],
  children: readonly ChildEnd[],
  signal: AbortSignal,
): Promise<Attempt[]> {
  const known = new Map(
    (await catalog.attempts.list(ensembleId, signal)).map((attempt) => [attempt.bcId, attempt]),
  )
  const complete: Attempt[] = []
  for (const { bcId, status, reason } of children) {
    let attempt = known.get(bcId)
    if (!attempt) {
      attempt = {
        bcId,
        status,
        reason,
        base: '',
        commit: '',
        filesChanged: 0,
        summary: '',
        detail: 'It ended before it could record what it made.',
      }
      await catalog.attempts.put(ensembleId, attempt, signal)
    }
    complete.push(attempt)
  }
  return complete
}

/** Groups of two and more candidates with the same tree. */
export async function findEqualGroups(
  mirror: Mirror,
  candidates: readonly Attempt[],
  signal: AbortSignal,
): Promise<EqualGroup[]> {
  const groups = new Map<string, AgentId[]>()
  for (const { bcId, commit } of candidates) {
    const tree = await mirror.treeOf(commit, signal)
    groups.set(tree, [...(groups.get(tree) ?? []), bcId])
  }
  return [...groups.values()].filter((group) => group.length > 1)
}
