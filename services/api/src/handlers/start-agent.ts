import type { DescMessage, MessageShape } from '@bufbuild/protobuf'
import {
  TuttiError,
  ifFound,
  checkPromptFits,
  firstTurnId,
  limits,
  promptTitle,
  wholePrompt,
  type AgentConfig,
  type AgentId,
} from '@tutti/core'
import {
  CreateAgentRequestSchema,
  StartBackgroundComposerFromSnapshotRequestSchema,
  type AgentOptions,
  type BackgroundComposerSource,
  type CreateAgentRequest,
  type RepositorySource,
  type StartBackgroundComposerFromSnapshotRequest,
} from '@tutti/proto'
import { sourceFromWire } from '@tutti/protocol/wire'
import type { AgentRow } from '@tutti/store'

import { agentConfigOf } from '../agent-config-of.ts'
import { toAgent, wireStatus } from '../agent-views.ts'
import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { answerOnce } from '../idempotency.ts'
import { newAgentId } from '../new-id.ts'
import { resolveRepository, type ResolvedRepository } from '../resolve-repository.ts'
import { startAgentRow } from '../start-workflows.ts'
import { ignoreExisting, storedAnyway } from './start-ensemble.ts'

interface Wanted<Desc extends DescMessage> {
  readonly schema: Desc
  readonly request: MessageShape<Desc>
  readonly prompt: string
  readonly repository: ResolvedRepository
  readonly options: AgentOptions | undefined
  readonly optionsField: string
  readonly idempotencyKey: string
  readonly bcId: string
  readonly source: BackgroundComposerSource
}

/** Starts one agent: the seed's method and ours, which differ in how they say what is wanted. Steps as for an ensemble. */
export function createStartAgent(deps: HandlerDeps) {
  const { catalog, clock, config, eventLog, jsonBlobs } = deps

  return {
    /** `StartBackgroundComposerFromSnapshot` (seed 001). Snapshots do not exist yet: every name is unknown. */
    async startBackgroundComposerFromSnapshot(
      request: StartBackgroundComposerFromSnapshotRequest,
      context: CallContext,
    ) {
      refuseUnbuilt(request)
      const { owner } = callerOf(context)
      const { repositoryInfo, devcontainerStartingPoint, tutti } = request
      const row = await start(
        {
          schema: StartBackgroundComposerFromSnapshotRequestSchema,
          request,
          prompt: promptOf(request),
          repository: await find(
            owner,
            repositoryInfo,
            'repository_info',
            context.signal,
            devcontainerStartingPoint,
          ),
          options: withModel(tutti?.options, request.modelDetails?.modelName ?? ''),
          optionsField: 'tutti.options',
          idempotencyKey: tutti?.idempotencyKey ?? '',
          bcId: request.bcId,
          source: request.source,
        },
        owner,
        context.signal,
      )
      return { bcId: row.bcId, status: wireStatus(row).status }
    },

    /** `tutti.v1.AgentService.CreateAgent`. */
    async createAgent(request: CreateAgentRequest, context: CallContext) {
      const { owner } = callerOf(context)
      const row = await start(
        {
          schema: CreateAgentRequestSchema,
          request,
          prompt: request.prompt,
          repository: await find(owner, request.repository, 'repository', context.signal),
          options: request.options,
          optionsField: 'options',
          idempotencyKey: request.idempotencyKey,
          bcId: request.bcId,
          source: request.source,
        },
        owner,
        context.signal,
      )
      const config = await jsonBlobs.get<AgentConfig>(row.configBlobId, context.signal)
      return { agent: toAgent(row, { config, missing: '' }) }
    },
  }

  function find(
    owner: string,
    source: RepositorySource | undefined,
    field: string,
    signal: AbortSignal,
    point?: StartBackgroundComposerFromSnapshotRequest['devcontainerStartingPoint'],
  ) {
    return resolveRepository(deps, owner, source, field, signal, point)
  }

  async function start<Desc extends DescMessage>(
    wanted: Wanted<Desc>,
    owner: string,
    signal: AbortSignal,
  ): Promise<AgentRow> {
    const { schema, request, bcId, idempotencyKey } = wanted
    // First, so that what is refused claims no key.
    const agentConfig = configOf(wanted)
    // An id that the client made is a key by itself: whoever sends it again means the same agent.
    const key = idempotencyKey || (bcId && `bc_id:${bcId}`)
    const { answer, repeated } = await answerOnce(
      catalog.idempotency,
      { owner, key, schema, request },
      () => ({ bcId: bcId ? agentIdOf(bcId) : newAgentId(clock.now()) }),
      signal,
    )
    const known = repeated ? await ifFound(catalog.agents.get(owner, answer.bcId, signal)) : undefined
    if (!known) await store(wanted, agentConfig, owner, answer.bcId, signal)
    const row = known ?? (await catalog.agents.get(owner, answer.bcId, signal))
    if (!row.starting) return row
    try {
      await startAgentRow(deps, row, signal)
    } catch (error) {
      throw storedAnyway(error, { bc_id: row.bcId })
    }
    return row
  }

  function configOf<Desc extends DescMessage>(wanted: Wanted<Desc>): AgentConfig {
    const { prompt, repository, options, optionsField } = wanted
    const agentConfig = agentConfigOf(
      {
        ...repository,
        agent: options?.agent,
        agentField: `${optionsField}.agent`,
        checkCommand: '',
        turnTimeout: options?.turnTimeout,
        wishes: options,
        wishesField: optionsField,
      },
      config,
    )
    checkPromptFits(agentConfig.agentSpec, wholePrompt(prompt, agentConfig.promptSuffix), 'prompt')
    return agentConfig
  }

  async function store<Desc extends DescMessage>(
    { prompt, repository, options, source }: Wanted<Desc>,
    agentConfig: AgentConfig,
    owner: string,
    bcId: AgentId,
    signal: AbortSignal,
  ): Promise<void> {
    const promptBlobId = await jsonBlobs.putText(owner, prompt, signal)
    const configBlobId = await jsonBlobs.put(owner, agentConfig, signal)
    await eventLog.create(bcId, owner, signal)
    await catalog.agents
      .insert(
        {
          bcId,
          owner,
          title: options?.title || promptTitle(prompt),
          repository: repository.repository,
          agentSpec: agentConfig.agentSpec,
          configBlobId,
          createdAt: clock.now(),
          state: {
            status: 'UNSPECIFIED',
            paused: false,
            queue: [{ turnId: firstTurnId(bcId), promptBlobId, source: sourceFromWire(source) }],
          },
        },
        signal,
      )
      .catch(ignoreExisting)
  }
}

function refuseUnbuilt(request: StartBackgroundComposerFromSnapshotRequest): void {
  const { snapshotNameOrId, conversationHistory, grindModeConfig } = request
  if (snapshotNameOrId !== '') {
    throw new TuttiError(
      'not_found',
      `There is no snapshot ${JSON.stringify(snapshotNameOrId)}. Start from repository_info.`,
      {
        field: 'snapshot_name_or_id',
      },
    )
  }
  const field =
    conversationHistory.length > 0
      ? 'conversation_history'
      : grindModeConfig
        ? 'grind_mode_config'
        : undefined
  if (field)
    throw new TuttiError('invalid_argument', `${field} is not supported by this version. Leave it out.`, {
      field,
    })
}

/** The same text in up to three places; the first that is there counts. @throws TuttiError `invalid_argument` above 1 MiB. */
function promptOf({
  prompt,
  richPrompt,
  conversationAction,
}: StartBackgroundComposerFromSnapshotRequest): string {
  const action =
    conversationAction?.action.case === 'userMessage' ? conversationAction.action.value : undefined
  const text = prompt || action?.text || richPrompt || action?.richText || ''
  if (text === '') throw new TuttiError('invalid_argument', 'prompt must not be empty.', { field: 'prompt' })
  if (Buffer.byteLength(text) <= limits.maxPromptBytes) return text
  throw new TuttiError('invalid_argument', 'prompt must not be longer than 1 MiB.', { field: 'prompt' })
}

/** Seed 001 has the model beside the agent. */
function withModel(options: AgentOptions | undefined, model: string): AgentOptions | undefined {
  if (model === '' || options?.agent?.model) return options
  const agent = {
    $typeName: 'tutti.v1.AgentSpec',
    spec: '',
    promptSuffix: '',
    ...options?.agent,
    model,
  } as const
  return { $typeName: 'tutti.v1.AgentOptions', setupCommand: '', onQuestion: 0, title: '', ...options, agent }
}
