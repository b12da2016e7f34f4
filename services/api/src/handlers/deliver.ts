import {
  TuttiError,
  checkBranch,
  deliveryFailures,
  type AgentId,
  type DeliveryPlan,
  type EnsembleId,
} from '@tutti/core'
import { PullRequestMode, type DeliverAgentRequest, type MakePRBackgroundComposerRequest } from '@tutti/proto'
import type { DeliveryEvent, EnsembleResult } from '@tutti/protocol'

import { deliveryModeOf } from '../agent-config-of.ts'
import { callerOf } from '../call-context.ts'
import { agentIdOf, commandAgent } from '../commands.ts'
import { ensembleIdOf } from '../ensemble-views.ts'
import { followLog } from '../follow-log.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { requestIdOf } from '../new-id.ts'
import { pullRequestView } from '../pull-request-view.ts'

type Delivered = Exclude<DeliveryEvent, { outcome: 'failed' }>

const defaultPlan = { branch: '', title: '', base: '', body: '', mode: PullRequestMode.UNSPECIFIED }

/** Delivers an agent's newest checkpoint, and answers when the log says how that ended. */
export function createDeliver(deps: HandlerDeps) {
  const { catalog, eventLog, jsonBlobs, recordViews, config } = deps

  return {
    /** `MakePRBackgroundComposer` (seed 001): push and find-or-create with defaults (design §11.9). */
    async makePRBackgroundComposer(request: MakePRBackgroundComposerRequest, context: CallContext) {
      const { owner } = callerOf(context)
      if (request.bcId === '')
        return ensembleResult(owner, ensembleIdOf(request.workflowId, 'workflow_id'), context.signal)
      const bcId = agentIdOf(request.bcId)
      const row = await catalog.agents.get(owner, bcId, context.signal)
      if (request.workflowId !== '' && row.ensembleId !== request.workflowId) {
        throw new TuttiError('not_found', `Ensemble ${request.workflowId} has no child ${bcId}.`, {
          field: 'workflow_id',
        })
      }
      const delivered = await deliver(owner, bcId, defaultPlan, context.signal)
      if (delivered.outcome === 'nothing_to_deliver')
        return { hasCommits: false, ...ownerAndRepo(row.repository) }
      return {
        prUrl: delivered.pullRequest?.url ?? '',
        branchName: delivered.branch,
        hasCommits: true,
        ...ownerAndRepo(row.repository),
        tutti: await pullRequestOf(owner, bcId, row.repository, delivered, context.signal),
      }
    },

    /** `tutti.v1.AgentService.DeliverAgent`. */
    async deliverAgent(request: DeliverAgentRequest, context: CallContext) {
      const { owner } = callerOf(context)
      const bcId = agentIdOf(request.bcId)
      const row = await catalog.agents.get(owner, bcId, context.signal)
      const delivered = await deliver(owner, bcId, request, context.signal)
      if (delivered.outcome === 'nothing_to_deliver') return { reason: 'nothing_to_deliver' }
      const { branch, commit } = delivered
      if (!delivered.pullRequest) return { branch, commit, reason: 'completed' }
      return {
        branch,
        commit,
        reason: 'completed',
        pullRequest: await pullRequestOf(owner, bcId, row.repository, delivered, context.signal),
      }
    },
  }

  /** As the list shows it; what was only pushed is shown by its branch. */
  async function pullRequestOf(
    owner: string,
    bcId: AgentId,
    repository: string,
    { branch, commit, pullRequest }: Extract<Delivered, { outcome: 'delivered' }>,
    signal: AbortSignal,
  ) {
    if (!pullRequest) return { branch, headCommit: commit, repository, bcId }
    return pullRequestView(await catalog.pullRequests.get(owner, repository, pullRequest.number, signal))
  }

  async function deliver(
    owner: string,
    bcId: AgentId,
    wish: typeof defaultPlan,
    signal: AbortSignal,
  ): Promise<Delivered> {
    if (wish.body !== '') {
      throw new TuttiError(
        'invalid_argument',
        'body is made from the summary in this version. Leave it out.',
        { field: 'body' },
      )
    }
    if (wish.branch !== '') checkBranch(wish.branch, 'branch')
    if (wish.base !== '') checkBranch(wish.base, 'base')
    const plan: DeliveryPlan = {
      mode: deliveryModeOf(wish.mode, config),
      branch: wish.branch,
      title: wish.title,
      base: wish.base,
    }
    const planBlobId = await jsonBlobs.put(owner, plan, signal)
    const { last } = await eventLog.head(bcId, signal)
    const requestId = requestIdOf(owner, '')
    await commandAgent(deps, { owner, bcId, requestId, command: { type: 'deliver' }, planBlobId }, signal)
    return outcomeOf(bcId, requestId, last, signal)
  }

  async function outcomeOf(
    bcId: AgentId,
    requestId: string,
    from: number,
    signal: AbortSignal,
  ): Promise<Delivered> {
    for await (const { records, closed } of followLog(
      deps.reads,
      bcId,
      from,
      config['stream.heartbeat'],
      signal,
    )) {
      for (const record of records) {
        if (record.type !== 'delivery') continue
        const { event } = recordViews.of(bcId, record)
        if (event.type !== 'delivery' || event.requestId !== requestId) continue
        if (event.outcome !== 'failed') return event
        throw new TuttiError(
          event.failure === 'forge_unavailable' ? 'unavailable' : 'failed_precondition',
          `${event.detail || deliveryFailures[event.failure]} The work is kept.`,
          { reason: 'delivery_failed', delivery_failure: event.failure },
        )
      }
      if (closed) break
    }
    throw new TuttiError('failed_precondition', 'The agent ended before it was delivered.', { bc_id: bcId })
  }

  /** An ensemble delivers itself; this tells what came of it. */
  async function ensembleResult(owner: string, ensembleId: EnsembleId, signal: AbortSignal) {
    const row = await catalog.ensembles.get(owner, ensembleId, signal)
    const result = row.resultBlobId && (await jsonBlobs.get<EnsembleResult>(row.resultBlobId, signal))
    const made = result && result.pull_request
    if (made) {
      return {
        prUrl: made.url,
        branchName: made.branch,
        hasCommits: true,
        ...ownerAndRepo(row.repository),
        tutti: {
          url: made.url,
          number: BigInt(made.number),
          branch: made.branch,
          repository: row.repository,
          ensembleId,
        },
      }
    }
    if (row.reason === 'nothing_to_deliver') return { hasCommits: false, ...ownerAndRepo(row.repository) }
    throw new TuttiError(
      'failed_precondition',
      `The ensemble is ${row.phase} and has no pull request. Wait for its end, or give bc_id to deliver one child's work.`,
      { state: row.phase },
    )
  }
}

/** The last two parts of a URL; a registered repository has no owner. */
function ownerAndRepo(repository: string): { owner: string; repo: string } {
  if (!/[:/]/.test(repository)) return { owner: '', repo: repository }
  const [repo = '', owner = ''] = repository.split(/[:/]/).toReversed()
  return { owner, repo: repo.replace(/\.git$/, '') }
}
