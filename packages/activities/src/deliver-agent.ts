import { ifFound, type AgentId, type DeliveryPlan } from '@tutti/core'
import type { PullRequest } from '@tutti/forge'
import type { DeliveryEvent } from '@tutti/protocol'
import { cancellationSignal } from './cancellation.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities, DeliverResult } from './contract.ts'
import { deliverCommit } from './deliver.ts'
import { endRecorded } from './end-recorded.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail } from './fail.ts'
import { readEvents } from '@tutti/workspace/log'
import { repositoryLocation } from '@tutti/store'

type Delivered = Extract<DeliveryEvent, { outcome: 'delivered' }>

const defaultPlan: DeliveryPlan = { mode: 'ready', branch: '', title: '', base: '' }

/** Delivers an agent's newest checkpoint (MakePR: push and find-or-create with defaults, design §11.9). */
export function createDeliverAgent(deps: ActivityDeps, configs: ConfigBlobs): Activities['deliverAgent'] {
  return (input) =>
    orFail(async () => {
      const signal = cancellationSignal()
      const { bcId, requestId } = input
      const result = await endRecorded(deps, { log: bcId, requestId }, signal, () =>
        deliverAgent(deps, configs, input, signal),
      )
      await projectPullRequest(deps, bcId, signal)
      return result
    })
}

async function deliverAgent(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  input: Parameters<Activities['deliverAgent']>[0],
  signal: AbortSignal,
): Promise<DeliverResult> {
  const { bcId, owner, requestId } = input
  const config = await configs.agent(input.configBlobId, signal)
  const row = await deps.catalog.agents.get(owner, bcId, signal)
  const plan = input.planBlobId ? await configs.plan(input.planBlobId, signal) : defaultPlan
  const { repository } = config
  const location = await repositoryLocation(deps.catalog.repositories, owner, repository, signal)
  const held = row.commit ?? row.baseCommit
  const mirror = held
    ? await deps.mirrors.restore(location, held, signal)
    : await deps.mirrors.attach(location, signal)
  const base = row.baseCommit ?? (await mirror.resolve(config.ref, signal))
  const before = await deliveredBefore(deps, { bcId, owner, repository, branch: plan.branch }, signal)
  const shown = before?.pullRequest
  return deliverCommit(
    deps,
    {
      log: bcId,
      owner,
      requestId,
      repository,
      location,
      mirror,
      base,
      commit: row.commit ?? base,
      plan: {
        ...plan,
        branch: plan.branch || before?.branch || '',
        base: plan.base || shown?.base || '',
      },
      defaultBranchName: `tutti/${bcId}`,
      ...(before && { expected: before.commit }),
      title: plan.title || shown?.title || row.title,
      body: shown?.body ?? `Made by \`${config.agentSpec.split(' ', 1)[0]}\` as \`${bcId}\`.`,
    },
    signal,
  )
}

/**
 * The last delivery to this branch, or to any when none is named: a branch of ours moves along, and its pull request keeps what a
 * person reads. Undefined when there is none, or its pull request is no longer open.
 */
async function deliveredBefore(
  { eventLog, forge }: ActivityDeps,
  { bcId, owner, repository, branch }: { bcId: AgentId; owner: string; repository: string; branch: string },
  signal: AbortSignal,
): Promise<{ branch: string; commit: string; pullRequest?: PullRequest } | undefined> {
  const deliveries = await deliveriesOf(eventLog, bcId, signal)
  const last = deliveries.findLast((event) => branch === '' || event.branch === branch)
  if (!last) return undefined
  const made = deliveries.findLast((event) => event.branch === last.branch && event.pullRequest)?.pullRequest
  if (!made) return { branch: last.branch, commit: last.commit }
  const { branch: head, commit } = last
  const pullRequest = await ifFound(forge.get(owner, repository, made.number, signal))
  // A forge whose records were lost has none of that number, or one of somebody else's; the branch is there all the same.
  if (pullRequest?.head !== head) return { branch: head, commit }
  return pullRequest.state === 'open' ? { branch: head, commit, pullRequest } : undefined
}

/** What of an agent was delivered, oldest first. */
async function deliveriesOf(
  eventLog: ActivityDeps['eventLog'],
  bcId: AgentId,
  signal: AbortSignal,
): Promise<Delivered[]> {
  const deliveries: Delivered[] = []
  for await (const { event } of readEvents(eventLog, bcId, ['delivery'], signal)) {
    if (event.outcome === 'delivered') deliveries.push(event)
  }
  return deliveries
}

async function projectPullRequest(
  { eventLog, catalog }: ActivityDeps,
  bcId: AgentId,
  signal: AbortSignal,
): Promise<void> {
  const { last } = await eventLog.head(bcId, signal)
  const delivered = (await deliveriesOf(eventLog, bcId, signal)).at(-1)
  if (!delivered) return
  const { branch, pullRequest } = delivered
  await catalog.agents.project(
    bcId,
    { logSequence: last, branch, ...(pullRequest && { prUrl: pullRequest.url }) },
    signal,
  )
}
