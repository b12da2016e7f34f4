import {
  TuttiError,
  agentStatuses,
  composerStatus,
  type AgentConfig,
  type AgentStatus,
  type ComposerStatus,
  type EnsembleId,
} from '@tutti/core'
import {
  type GetAgentRequest,
  type GetBackgroundComposerInfoRequest,
  type GetBackgroundComposerStatusRequest,
  type ListAgentsRequest,
  type ListBackgroundComposersRequest,
} from '@tutti/proto'
import { composerStatusFromWire, workflowStatusFromWire } from '@tutti/protocol/wire'
import type { AgentRow, Page } from '@tutti/store'
import { isLost } from '@tutti/workspace/log'

import { toAgent, toComposer, toExtensions, wireStatus } from '../agent-views.ts'
import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import { ensembleIdOf } from '../ensemble-views.ts'
import { filledPage } from '../filled-page.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { createParts } from '../read-parts.ts'
import { stateMetadata } from '../saved-states.ts'

/** Everything that reads agents from the catalog: the seed's methods and ours. */
export function createAgents({ catalog, jsonBlobs, savedStates }: HandlerDeps) {
  const load = (id: string, context: CallContext): Promise<AgentRow> =>
    catalog.agents.get(callerOf(context).owner, agentIdOf(id), context.signal)
  /** Of an agent that is lost in part the rest is shown: it hides no other, and its row says nearly all. */
  async function settingsOf(row: AgentRow, signal: AbortSignal, parts = createParts(isAway)) {
    const config = await parts.read('Its settings', jsonBlobs.get<AgentConfig>(row.configBlobId, signal))
    return { config, missing: parts.missing() }
  }

  return {
    async getBackgroundComposerStatus(request: GetBackgroundComposerStatusRequest, context: CallContext) {
      const row = await load(request.bcId, context)
      return { ...wireStatus(row), tutti: toExtensions(row) }
    },

    async getBackgroundComposerInfo(request: GetBackgroundComposerInfoRequest, context: CallContext) {
      const row = await load(request.bcId, context)
      const { savedState } = row
      const parts = createParts()
      const cloudAgentState =
        savedState && (await parts.read('Its state', savedStates.load(savedState, context.signal)))
      const composer = toComposer(row, await settingsOf(row, context.signal, parts))
      if (!savedState || !cloudAgentState) return { composer }
      return { composer, cloudAgentState, metadata: stateMetadata(savedState) }
    },

    async getAgent(request: GetAgentRequest, context: CallContext) {
      const row = await load(request.bcId, context)
      const agent = toAgent(row, await settingsOf(row, context.signal))
      agent.detail = row.state.status === 'EXPIRED' ? keptOf(row) : await failureDetail(row, context.signal)
      return { agent }
    },

    async listBackgroundComposers(request: ListBackgroundComposersRequest, context: CallContext) {
      const wanted = new Set(request.statuses.map(composerStatusFromWire))
      const shown = (row: AgentRow) =>
        wanted.size === 0 || wanted.has(composerStatus(row.state.status, row.hadSandbox))
      const statuses = agentStatuses.filter(
        (status) => wanted.size === 0 || possibleStatuses(status).some((seen) => wanted.has(seen)),
      )
      const page = await list(request, statuses, shown, context)
      const composers = page.items.map(async (row) => toComposer(row, await settingsOf(row, context.signal)))
      return { composers: await Promise.all(composers), nextPageToken: page.nextPageToken }
    },

    async listAgents(request: ListAgentsRequest, context: CallContext) {
      const wanted = request.workflowStatuses.map(workflowStatusFromWire)
      const page = await list(request, wanted.length > 0 ? wanted : agentStatuses, () => true, context)
      const agents = page.items.map(async (row) => toAgent(row, await settingsOf(row, context.signal)))
      return { agents: await Promise.all(agents), nextPageToken: page.nextPageToken }
    },
  }

  /** What went wrong in the turn that left the agent in ERROR, in its own words. */
  async function failureDetail({ state, savedState }: AgentRow, signal: AbortSignal): Promise<string> {
    if (state.status !== 'ERROR' || !savedState) return ''
    // Extra words: the agent is shown without them when its state cannot be read.
    const saved = await savedStates.load(savedState, signal).catch(() => undefined)
    return saved?.userFacingErrorDetails?.details?.detail ?? ''
  }

  async function list(
    request: Pick<ListAgentsRequest, 'pageSize' | 'pageToken' | 'includeArchived' | 'ensembleId'>,
    statuses: readonly AgentStatus[],
    shown: (row: AgentRow) => boolean,
    context: CallContext,
  ): Promise<Page<AgentRow>> {
    const { owner } = callerOf(context)
    const ensembleId: EnsembleId | undefined =
      request.ensembleId === '' ? undefined : ensembleIdOf(request.ensembleId)
    const kept = statuses.filter((status) => request.includeArchived || status !== 'ARCHIVED')
    // An unknown ensemble is not an empty one.
    if (ensembleId) await catalog.ensembles.get(owner, ensembleId, context.signal)
    const filter = { statuses: kept, ...(ensembleId ? { ensembleId } : {}) }
    return filledPage(request, (page) => catalog.agents.list(owner, filter, page, context.signal), shown)
  }
}

/** Lost, or on a disk or in a store that does not give it now. */
const isAway = (thrown: unknown) => isLost(thrown) || TuttiError.from(thrown).code === 'unavailable'

/** What of an EXPIRED agent can still be had, and how. */
function keptOf({ bcId, baseCommit, commit = baseCommit }: AgentRow): string {
  const log = 'Its run log is kept for ever.'
  if (!commit) return `It never had a workspace. ${log}`
  const how = `\`tutti agent workspace ${bcId} --to DIR\` writes it, \`tutti agent deliver ${bcId}\` delivers it`
  return `Its last commit ${commit} is kept for ever: ${how}, and a new agent can go on from the delivered branch. Files that no commit has go when nobody has used them for the retention. ${log}`
}

const possibleStatuses = (status: AgentStatus): ComposerStatus[] => [
  composerStatus(status, true),
  composerStatus(status, false),
]
