import { TuttiError, limits, type AgentConfig, type EnsembleConfig, type EnsembleId } from '@tutti/core'
import type { AgentRow, EnsembleRow } from '@tutti/store'
import type { CloudAgentInput, ParallelAgentsInput } from '@tutti/workflows'

import { timingsOf } from './agent-config-of.ts'
import type { ApiDeps } from './api-deps.ts'
import type { JsonBlobs } from './json-blobs.ts'
import { cutTitle } from './cut-title.ts'

/** Longer titles help nobody in the Temporal UI. In bytes of JSON, as in {@link cutTitle}. */
const titleBytes = 200

export type StartDeps = Pick<ApiDeps, 'catalog' | 'temporal' | 'crashPoint' | 'config'> & {
  readonly jsonBlobs: JsonBlobs
}

/**
 * Starting from what is stored, so that the request, its repeat and the sweep do the same thing (design §3). A workflow that was
 * started before is a success.
 */
export async function startAgentRow(deps: StartDeps, row: AgentRow, signal: AbortSignal): Promise<void> {
  const input = await agentInput(deps, row, signal)
  await deps.crashPoint('agent.start', () => deps.temporal.startAgent(input, signal))
  await deps.catalog.agents.markStarted(row.bcId, signal)
}

/** As {@link startAgentRow}, for the parent of an ensemble, which starts the children itself. */
export async function startEnsembleRow(
  deps: StartDeps,
  row: EnsembleRow,
  signal: AbortSignal,
): Promise<void> {
  const config = await deps.jsonBlobs.get<EnsembleConfig>(row.configBlobId, signal)
  const children = await childRows(deps, row.owner, row.ensembleId, signal)
  const first = children[0]
  if (!first)
    throw new TuttiError('data_loss', `Ensemble ${row.ensembleId} has no children.`, {
      ensemble_id: row.ensembleId,
    })
  const agent = await deps.jsonBlobs.get<AgentConfig>(first.configBlobId, signal)
  const input: ParallelAgentsInput = {
    ensembleId: row.ensembleId,
    owner: row.owner,
    title: cutTitle(row.title, titleBytes),
    repository: row.repository,
    configBlobId: row.configBlobId,
    children: children.map(({ bcId, configBlobId }) => ({
      bcId,
      configBlobId,
      promptBlobId: config.promptBlobId,
      title: '',
    })),
    hasCheck: config.checkCommand !== '',
    ensembleTimeoutMs: config.timeoutMs ?? deps.config['ensemble.timeout'],
    timings: timingsOf(agent, deps.config),
  }
  const titled = withChildTitles(
    input,
    children.map(({ title }) => title),
  )
  await deps.crashPoint('ensemble.start', () => deps.temporal.startEnsemble(titled, signal))
  await deps.catalog.ensembles.markStarted(row.ensembleId, signal)
}

/** Shares what the other parts leave of the argument's limit among the children's titles. */
function withChildTitles(input: ParallelAgentsInput, titles: readonly string[]): ParallelAgentsInput {
  const left = limits.maxArgumentBytes - Buffer.byteLength(JSON.stringify(input))
  const each = Math.min(titleBytes, Math.floor(left / titles.length))
  const children = input.children.map((child, index) => ({ ...child, title: cutTitle(titles[index]!, each) }))
  return { ...input, children }
}

/** The input that starts an agent's workflow, or reopens it after its run has returned. */
export async function agentInput(
  deps: Pick<StartDeps, 'jsonBlobs' | 'config'>,
  row: AgentRow,
  signal: AbortSignal,
): Promise<CloudAgentInput> {
  const config = await deps.jsonBlobs.get<AgentConfig>(row.configBlobId, signal)
  // The prompt of an agent that has not begun waits in its row's queue; the workflow takes it as its first turn.
  const [firstTurn, ...queue] = row.state.status === 'UNSPECIFIED' ? row.state.queue : []
  return {
    bcId: row.bcId,
    owner: row.owner,
    title: cutTitle(row.title, titleBytes),
    repository: row.repository,
    configBlobId: row.configBlobId,
    state: firstTurn ? { ...row.state, queue } : row.state,
    incarnation: row.incarnation,
    turns: row.turns,
    hadSandbox: row.hadSandbox,
    ...(firstTurn ? { firstTurn } : {}),
    // A child that is reopened after its attempt is an agent like any other.
    ...(row.ensembleId && row.state.status === 'UNSPECIFIED' ? { ensembleId: row.ensembleId } : {}),
    ...(row.ensembleId ? { memberOf: row.ensembleId } : {}),
    hasCheck: config.checkCommand !== '',
    timings: timingsOf(config, deps.config),
  }
}

/** The children of an ensemble, in order; at most 50. */
export async function childRows(
  { catalog }: Pick<ApiDeps, 'catalog'>,
  owner: string,
  ensembleId: EnsembleId,
  signal: AbortSignal,
): Promise<readonly AgentRow[]> {
  const { items } = await catalog.agents.list(
    owner,
    { ensembleId },
    { pageSize: 1000, pageToken: '' },
    signal,
  )
  return items.toSorted((left, right) => (left.childIndex ?? 0) - (right.childIndex ?? 0))
}
