import {
  mirrorRefs,
  TuttiError,
  type DeliveryFailure,
  type DeliveryPlan,
  type EnsembleId,
  type LogId,
} from '@tutti/core'
import type { Mirror } from '@tutti/git'
import { cancellationSignal } from './cancellation.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities, DeliverResult } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { openEnsemble } from './ensemble-mirror.ts'
import { endRecorded } from './end-recorded.ts'
import { orFail } from './fail.ts'
import { recordDelivery as record } from './record-delivery.ts'
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
  /** What to do when it cannot be delivered; put behind the reason. */
  readonly otherwise?: string
}

/** Pushes the branch of an ensemble and opens its one pull request. */
export function createDeliver(deps: ActivityDeps, configs: ConfigBlobs): Activities['deliver'] {
  return (input) =>
    orFail(async () => {
      const signal = cancellationSignal()
      const { ensembleId, owner } = input
      const end = { log: ensembleId, requestId: ensembleId }
      return endRecorded(deps, end, signal, async () => {
        const { config, location, base } = await openEnsemble(deps, configs, input, signal)
        const mirror = await deps.mirrors.restore(location, input.commit, signal)
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
            otherwise: whereItIs(mirror, ensembleId, input.commit),
          },
          signal,
        )
      })
    })
}

/** An ensemble delivers once, so a person has to take it from here. */
const whereItIs = ({ path }: Mirror, ensembleId: EnsembleId, commit: string): string =>
  `The result is commit ${commit}: \`git fetch ${path} ${mirrorRefs.synthesis(ensembleId)}\` on the server brings it, and \`tutti agent deliver ID\` delivers the work of one agent.`

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
  const fail = (failure: DeliveryFailure, detail: string) =>
    record(
      deps,
      delivery,
      { outcome: 'failed', failure, detail: `${detail} ${delivery.otherwise ?? ''}`.trim() },
      signal,
    )
  if (plan.mode !== 'none' && plan.base !== '' && !(await hasBranch(deps, delivery, signal))) {
    return fail(
      'conflict',
      `The repository has no branch "${plan.base}" that a pull request could be against.`,
    )
  }
  const request = {
    commit,
    branch: plan.branch || delivery.defaultBranchName,
    asked: plan.branch !== '',
    ...(delivery.expected && { expected: delivery.expected }),
  }
  const pushed = await pushBranch(deps, mirror, request, signal)
  if ('failure' in pushed) return fail(pushed.failure, pushed.detail)
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

/** Whether the source has the base branch: as the mirror knows it, else as it is now. */
async function hasBranch(
  { mirrors }: ActivityDeps,
  { mirror, location, plan }: Delivery,
  signal: AbortSignal,
): Promise<boolean> {
  const has = (candidate: Mirror) =>
    candidate.resolve(`refs/heads/${plan.base}`, signal).then(
      () => true,
      (thrown: unknown) => {
        if (TuttiError.from(thrown).code === 'not_found') return false
        throw thrown
      },
    )
  return (await has(mirror)) || (await has(await mirrors.open(location, signal)))
}
