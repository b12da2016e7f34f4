import { mirrorRefs, type DeliveryPlan, type LogId } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import { encodeRunEvent, type DeliveryEvent } from '@tutti/protocol'
import { cancellationSignal } from './cancellation.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities, DeliverResult } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { openEnsemble } from './ensemble-mirror.ts'
import { orFail } from './fail.ts'
import { pushBranch } from './push-branch.ts'
import { describeEnsemble } from '@tutti/forge'
import { readOutcome } from './ensemble-outcome.ts'
import { newestVerification } from './newest-verification.ts'

export interface Delivery {
  readonly log: LogId
  readonly owner: string
  readonly requestId: string
  readonly repository: string
  readonly location: string
  readonly mirror: Mirror
  readonly base: string
  readonly commit: string
  readonly plan: DeliveryPlan
  readonly defaultBranchName: string
  /** What our branch was at the last delivery, when there was one. */
  readonly expected?: string
  readonly title: string
  readonly body: string
}

/** Pushes the branch of an ensemble and opens its one pull request. */
export function createDeliver(deps: ActivityDeps, configs: ConfigBlobs): Activities['deliver'] {
  return (input) =>
    orFail(async () => {
      const signal = cancellationSignal()
      const { ensembleId, owner } = input
      const { config, mirror, location, base } = await openEnsemble(deps, configs, input, signal)
      await mirror.updateRef(mirrorRefs.synthesis(ensembleId), input.commit, signal)
      const outcome = await readOutcome(deps, configs, input, input, signal)
      const check = await newestVerification(deps.eventLog, ensembleId, input.commit, signal)
      const words = describeEnsemble({
        ...outcome,
        prompt: await configs.text(config.promptBlobId, signal),
        strategy: config.strategy,
        ...(check && { check: { command: config.checkCommand, result: check } }),
      })
      return deliverCommit(
        deps,
        {
          log: ensembleId,
          owner,
          requestId: ensembleId,
          repository: config.repository,
          location,
          mirror,
          base,
          commit: input.commit,
          plan: config.delivery,
          defaultBranchName: `tutti/${ensembleId}`,
          title: config.delivery.title || words.title,
          body: words.body,
        },
        signal,
      )
    })
}

/** Push, then find or create the pull request; each step looks first, so that a repeat after a crash changes nothing. */
export async function deliverCommit(
  deps: ActivityDeps,
  delivery: Delivery,
  signal: AbortSignal,
): Promise<DeliverResult> {
  const { mirror, base, commit, plan, owner, repository } = delivery
  if ((await mirror.treeOf(base, signal)) === (await mirror.treeOf(commit, signal))) {
    return record(deps, delivery, { outcome: 'nothing_to_deliver' }, signal)
  }
  const request = {
    commit,
    branch: plan.branch || delivery.defaultBranchName,
    asked: plan.branch !== '',
    ...(delivery.expected && { expected: delivery.expected }),
  }
  const pushed = await pushBranch(deps, mirror, request, signal)
  if ('failure' in pushed) return record(deps, delivery, { outcome: 'failed', ...pushed }, signal)
  const { branch } = pushed
  if (plan.mode === 'none') return record(deps, delivery, { outcome: 'delivered', branch, commit }, signal)
  const pullRequest = await deps.crashPoint('deliver.pull_request', async () =>
    deps.forge.create(
      owner,
      repository,
      {
        head: branch,
        headCommit: commit,
        base: plan.base || (await deps.forge.defaultBranch(owner, repository, signal)),
        baseCommit: base,
        title: delivery.title,
        body: delivery.body,
        draft: plan.mode === 'draft',
        source: delivery.log,
      },
      signal,
    ),
  )
  const { url, number } = pullRequest
  return record(
    deps,
    delivery,
    { outcome: 'delivered', branch, commit, pullRequest: { url, number } },
    signal,
  )
}

type Outcome = DeliveryEvent extends infer Event
  ? Event extends DeliveryEvent
    ? Omit<Event, 'type' | 'requestId'>
    : never
  : never

async function record(
  deps: ActivityDeps,
  { log, requestId }: Delivery,
  outcome: Outcome,
  signal: AbortSignal,
): Promise<DeliverResult> {
  const event = { type: 'delivery', requestId, ...outcome } as DeliveryEvent
  const once = { id: `delivery/${requestId}`, epoch: 0, sequence: 1 }
  await deps.crashPoint('deliver.record', () =>
    deps.eventLog.append(log, once, [encodeRunEvent(event)], signal),
  )
  return { outcome: event.outcome }
}
