import { create } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { composerStatus, type AgentConfig } from '@tutti/core'
import {
  AgentExtensionsSchema,
  AgentSchema,
  BackgroundComposerSchema,
  EnsembleStatus,
  type Agent,
  type AgentExtensions,
  type BackgroundComposer,
} from '@tutti/proto'
import { encodeOffset } from '@tutti/protocol'
import {
  composerStatusToWire,
  questionToWire,
  sourceToWire,
  workflowStatusToWire,
} from '@tutti/protocol/wire'
import type { AgentRow } from '@tutti/store'

/** What an agent was started with, and in words what of it is lost. */
export interface AgentSettings {
  readonly config: AgentConfig | undefined
  readonly missing: string
}

/** An agent as `aiserver.v1.BackgroundComposer` (seed 001). */
export function toComposer(row: AgentRow, { config, missing }: AgentSettings): BackgroundComposer {
  return create(BackgroundComposerSchema, {
    bcId: row.bcId,
    name: row.title,
    ...wireStatus(row),
    source: sourceToWire(sourceOf(row)),
    repository: row.repository,
    ref: config?.ref ?? '',
    branchName: row.branch ?? '',
    prUrl: row.prUrl ?? '',
    createdAtMs: BigInt(row.createdAt),
    updatedAtMs: BigInt(row.updatedAt),
    tutti: toExtensions(row, missing),
  })
}

/** An agent as `tutti.v1.Agent`. */
export function toAgent(row: AgentRow, { config, missing }: AgentSettings): Agent {
  const { status, workflowStatus } = wireStatus(row)
  const waiting = row.state.queue.length + (row.state.current ? 1 : 0)
  return create(AgentSchema, {
    bcId: row.bcId,
    title: row.title,
    status,
    workflowStatus,
    state: toExtensions(row, missing),
    repository: { location: repositoryCase(row.repository), ref: config?.ref ?? '' },
    baseCommit: row.baseCommit ?? '',
    agent: { spec: row.agentSpec, promptSuffix: config?.promptSuffix ?? '' },
    filesChanged: row.filesChanged,
    ...(row.prUrl ? { pullRequest: { url: row.prUrl, branch: row.branch ?? '', bcId: row.bcId } } : {}),
    completedTurns: Math.max(row.turns - waiting, 0),
    headOffsetKey: encodeOffset(row.bcId, row.logSequence),
    source: sourceToWire(sourceOf(row)),
    createdAt: timestampFromMs(row.createdAt),
    updatedAt: timestampFromMs(row.updatedAt),
  })
}

/** Both statuses of the wire, and what the agent is in an ensemble. */
export const wireStatus = (row: Pick<AgentRow, 'state' | 'hadSandbox' | 'ensembleId'>) => ({
  status: composerStatusToWire(composerStatus(row.state.status, row.hadSandbox)),
  workflowStatus: workflowStatusToWire(row.state.status),
  ensembleStatus: row.ensembleId ? EnsembleStatus.CHILD : EnsembleStatus.UNSPECIFIED,
})

export function toExtensions(row: AgentRow, missing = ''): AgentExtensions {
  const { state, openQuestion } = row
  return create(AgentExtensionsSchema, {
    paused: state.paused,
    reason: state.reason ?? '',
    queuedTurns: state.queue.length,
    ensembleId: row.ensembleId ?? '',
    incarnation: row.incarnation,
    commit: row.commit ?? '',
    missing,
    ...(openQuestion ? { question: questionToWire(openQuestion) } : {}),
  })
}

/** Names have neither a colon nor a slash, every URL has one. */
export const repositoryCase = (repository: string) =>
  /[:/]/.test(repository)
    ? ({ case: 'url', value: repository } as const)
    : ({ case: 'registered', value: repository } as const)

/** Of the turn that runs or waits; an agent at rest has none. */
const sourceOf = ({ state }: AgentRow): string => (state.current ?? state.queue[0])?.source ?? 'UNSPECIFIED'
