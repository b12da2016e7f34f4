import {
  TuttiError,
  ifFound,
  checkBranch,
  checkPromptFits,
  firstTurnId,
  promptTitle,
  wholePrompt,
  type AgentConfig,
  type AgentId,
  type BlobId,
  type EnsembleConfig,
  type EnsembleId,
} from '@tutti/core'
import {
  StartParallelAgentWorkflowRequestSchema,
  type EnsembleSpec,
  type StartParallelAgentWorkflowRequest,
} from '@tutti/proto'
import { sourceFromWire } from '@tutti/protocol/wire'
import type { NewAgent } from '@tutti/store'

import { agentConfigOf, deliveryModeOf, msOf, sandboxPolicyOf } from '../agent-config-of.ts'
import { callerOf } from '../call-context.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { answerOnce } from '../idempotency.ts'
import { newAgentId, newEnsembleId } from '../new-id.ts'
import { resolveRepository } from '../resolve-repository.ts'
import { startEnsembleRow } from '../start-workflows.ts'

interface Ids {
  readonly ensembleId: EnsembleId
  readonly bcIds: readonly AgentId[]
}

/**
 * `StartParallelAgentWorkflow` (design §3): ids first, then the claim of the key, the logs, the rows, and the workflow. Each step can
 * be done again; what a crash leaves out, the sweep or a repeat of the call does.
 */
export function createStartEnsemble(deps: HandlerDeps) {
  const { catalog, clock, config, eventLog, jsonBlobs } = deps

  return async (request: StartParallelAgentWorkflowRequest, context: CallContext) => {
    const { signal } = context
    const { owner } = callerOf(context)
    const spec = request.spec!
    // At the end it would cost the work of every child.
    if (spec.branch !== '') checkBranch(spec.branch, 'spec.branch')
    if (spec.baseBranch !== '') checkBranch(spec.baseBranch, 'spec.base_branch')
    const repository = await resolveRepository(deps, owner, spec.repository, 'spec.repository', signal)
    const configs = childConfigs(spec, repository)
    const make = (): Ids => ({
      ensembleId: newEnsembleId(clock.now()),
      bcIds: configs.map(() => newAgentId(clock.now())),
    })
    const { answer: ids, repeated } = await answerOnce(
      catalog.idempotency,
      { owner, key: request.idempotencyKey, schema: StartParallelAgentWorkflowRequestSchema, request },
      make,
      signal,
    )
    const known = repeated ? await findStarted(owner, ids.ensembleId, signal) : undefined
    if (!known) await store(owner, request, repository, configs, ids, signal)
    const row = known ?? (await catalog.ensembles.get(owner, ids.ensembleId, signal))
    if (row.starting) await start(row, signal)
    return { ensembleId: ids.ensembleId, bcIds: [...ids.bcIds] }
  }

  function childConfigs(spec: EnsembleSpec, repository: { repository: string; ref: string }): AgentConfig[] {
    const count = spec.count || spec.agents.length || config['ensemble.agents']
    return Array.from({ length: count }, (_, index) => {
      const entry = spec.agents.length > 0 ? index % spec.agents.length : 0
      const agentConfig = agentConfigOf(
        {
          ...repository,
          agent: spec.agents[entry],
          agentField: `spec.agents[${entry}]`,
          checkCommand: spec.checkCommand,
          turnTimeout: spec.childTimeout,
          wishes: spec,
          wishesField: 'spec',
        },
        config,
      )
      checkPromptFits(
        agentConfig.agentSpec,
        wholePrompt(spec.prompt, agentConfig.promptSuffix),
        'spec.prompt',
      )
      return agentConfig
    })
  }

  function findStarted(owner: string, ensembleId: EnsembleId, signal: AbortSignal) {
    return ifFound(catalog.ensembles.get(owner, ensembleId, signal))
  }

  async function store(
    owner: string,
    { spec, source }: StartParallelAgentWorkflowRequest,
    { repository, ref }: { repository: string; ref: string },
    configs: readonly AgentConfig[],
    { ensembleId, bcIds }: Ids,
    signal: AbortSignal,
  ): Promise<void> {
    const {
      prompt,
      strategy,
      setupCommand,
      checkCommand,
      readyTimeout,
      timeout,
      sandbox,
      branch,
      baseBranch,
      pullRequest,
    } = spec!
    const title = spec!.title || promptTitle(prompt)
    const promptBlobId = await jsonBlobs.putText(owner, prompt, signal)
    const timeoutMs = msOf(timeout)
    const ensembleConfig: EnsembleConfig = {
      version: 1,
      repository,
      ref,
      promptBlobId,
      strategy: strategy || config['ensemble.strategy'],
      checkCommand,
      checkTimeoutMs: config['check.timeout'],
      sandbox: sandboxPolicyOf(sandbox, 'spec.sandbox', config),
      setupCommand,
      readyTimeoutMs: msOf(readyTimeout) ?? config['sandbox.ready_timeout'],
      delivery: { mode: deliveryModeOf(pullRequest, config), branch, title, base: baseBranch },
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    }
    const configBlobId = await jsonBlobs.put(owner, ensembleConfig, signal)
    const createdAt = clock.now()
    const configIds = await storeConfigs(owner, configs, signal)
    const children = configs.map(({ agentSpec }, index): NewAgent => ({
      bcId: bcIds[index]!,
      owner,
      ensembleId,
      childIndex: index,
      title: `${index + 1}: ${title}`,
      repository,
      agentSpec,
      configBlobId: configIds[index]!,
      createdAt,
      state: {
        status: 'UNSPECIFIED',
        paused: false,
        queue: [{ turnId: firstTurnId(bcIds[index]!), promptBlobId, source: sourceFromWire(source) }],
      },
    }))
    await Promise.all([ensembleId, ...bcIds].map((log) => eventLog.create(log, owner, signal)))
    await catalog.ensembles
      .insert(
        {
          ensembleId,
          owner,
          title,
          repository,
          strategy: ensembleConfig.strategy,
          configBlobId,
          childIds: bcIds,
          createdAt,
        },
        children,
        signal,
      )
      .catch(ignoreExisting)
  }

  /** Children mostly have the same configuration; each is stored once. */
  async function storeConfigs(
    owner: string,
    configs: readonly AgentConfig[],
    signal: AbortSignal,
  ): Promise<BlobId[]> {
    const stored = new Map<string, Promise<BlobId>>()
    return Promise.all(
      configs.map((value) => {
        const text = JSON.stringify(value)
        const id = stored.get(text) ?? jsonBlobs.putText(owner, text, signal)
        stored.set(text, id)
        return id
      }),
    )
  }

  async function start(row: Parameters<typeof startEnsembleRow>[1], signal: AbortSignal): Promise<void> {
    try {
      await startEnsembleRow(deps, row, signal)
    } catch (error) {
      throw storedAnyway(error, { ensemble_id: row.ensembleId })
    }
  }
}

/** What was stored starts by itself; the caller should know rather than ask for a second one. */
export function storedAnyway(thrown: unknown, detail: Record<string, string>): TuttiError {
  const error = TuttiError.from(thrown)
  if (error.code !== 'unavailable') return error
  const [id] = Object.values(detail)
  return new TuttiError(
    'unavailable',
    `${error.message} ${id} is stored and starts as soon as Temporal answers.`,
    detail,
    error,
  )
}

/** A rival under the same key, or an earlier try that was cut off, stored the same rows. */
export function ignoreExisting(error: unknown): void {
  if (!(error instanceof TuttiError) || error.code !== 'already_exists') throw error
}
