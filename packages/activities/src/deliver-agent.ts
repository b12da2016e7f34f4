import type { DeliveryPlan } from '@tutti/core'
import type { DeliveryEvent } from '@tutti/protocol'
import { cancellationSignal } from './cancellation.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities } from './contract.ts'
import { deliverCommit } from './deliver.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail } from './fail.ts'
import { readEvents } from './read-events.ts'
import { repositoryLocation } from '@tutti/store'

const defaultPlan: DeliveryPlan = { mode: 'ready', branch: '', title: '', base: '' }

/** Delivers an agent's newest checkpoint (MakePR: push and find-or-create with defaults, design §11.9). */
export function createDeliverAgent(deps: ActivityDeps, configs: ConfigBlobs): Activities['deliverAgent'] {
  return (input) =>
    orFail(async () => {
      const signal = cancellationSignal()
      const { bcId, owner, requestId } = input
      const config = await configs.agent(input.configBlobId, signal)
      const row = await deps.catalog.agents.get(owner, bcId, signal)
      const plan = input.planBlobId ? await configs.plan(input.planBlobId, signal) : defaultPlan
      const location = await repositoryLocation(deps.catalog.repositories, owner, config.repository, signal)
      const mirror = await deps.mirrors.attach(location, signal)
      const base = row.baseCommit ?? (await mirror.resolve(config.ref, signal))
      const delivered = await deliveredBefore(deps, owner, row.prUrl, config.repository, signal)
      const result = await deliverCommit(
        deps,
        {
          log: bcId,
          owner,
          requestId,
          repository: config.repository,
          location,
          mirror,
          base,
          commit: row.commit ?? base,
          plan: delivered && plan.branch === '' ? { ...plan, branch: delivered.head } : plan,
          defaultBranchName: `tutti/${bcId}`,
          ...(delivered && { expected: delivered.headCommit }),
          title: plan.title || row.title,
          body: `Made by \`${config.agentSpec.split(' ', 1)[0]}\` as \`${bcId}\`.`,
        },
        signal,
      )
      await projectPullRequest(deps, bcId, signal)
      return result
    })
}

/** The pull request of the last delivery; its branch is ours and moves along. */
async function deliveredBefore(
  { forge }: ActivityDeps,
  owner: string,
  prUrl: string | undefined,
  repository: string,
  signal: AbortSignal,
) {
  const number = Number(prUrl?.split('/').at(-1))
  if (!Number.isInteger(number)) return undefined
  const found = await forge.get(owner, repository, number, signal)
  return found.state === 'open' ? found : undefined
}

async function projectPullRequest(
  { eventLog, catalog }: ActivityDeps,
  bcId: Parameters<Activities['deliverAgent']>[0]['bcId'],
  signal: AbortSignal,
): Promise<void> {
  const { last } = await eventLog.head(bcId, signal)
  let delivered: Extract<DeliveryEvent, { outcome: 'delivered' }> | undefined
  for await (const { event } of readEvents(eventLog, bcId, ['delivery'], signal)) {
    if (event.outcome === 'delivered') delivered = event
  }
  if (!delivered) return
  const { branch, pullRequest } = delivered
  await catalog.agents.project(
    bcId,
    { logSequence: last, branch, ...(pullRequest && { prUrl: pullRequest.url }) },
    signal,
  )
}
