import type { Duration } from '@bufbuild/protobuf/wkt'
import {
  TuttiError,
  mountProblem,
  parseAgentSpec,
  type AgentConfig,
  type DeliveryPlan,
  type SandboxPolicy,
} from '@tutti/core'
import {
  Isolation,
  OnQuestion,
  PullRequestMode,
  type AgentOptions,
  type AgentSpec,
  type EnsembleSpec,
  type SandboxSpec,
} from '@tutti/proto'
import type { AgentTimings } from '@tutti/workflows'

import type { ApiConfig } from './api-config.ts'

/** What one agent needs, from an ensemble's spec or a single agent's options: the fields that both have. */
type Wishes = Pick<
  EnsembleSpec | AgentOptions,
  'setupCommand' | 'readyTimeout' | 'sandbox' | 'onQuestion' | 'questionTimeout'
>

export interface AgentWish {
  readonly repository: string
  readonly ref: string
  readonly agent: AgentSpec | undefined
  /** Path of `agent` in the request, for errors. */
  readonly agentField: string
  readonly checkCommand: string
  readonly turnTimeout: Duration | undefined
  readonly wishes: Wishes | undefined
  /** Path of `wishes` in the request, for errors. */
  readonly wishesField: string
}

/** The stored form of what was asked for, with every default filled in. @throws TuttiError `invalid_argument`. */
export function agentConfigOf(wish: AgentWish, config: ApiConfig): AgentConfig {
  const { agent, wishes } = wish
  return {
    version: 1,
    repository: wish.repository,
    ref: wish.ref,
    agentSpec: agentSpecOf(agent, wish.agentField, config),
    promptSuffix: agent?.promptSuffix ?? '',
    setupCommand: wishes?.setupCommand ?? '',
    readyTimeoutMs: msOf(wishes?.readyTimeout) ?? config['sandbox.ready_timeout'],
    checkCommand: wish.checkCommand,
    checkTimeoutMs: config['check.timeout'],
    turnTimeoutMs: msOf(wish.turnTimeout) ?? config['turn.timeout'],
    stallTimeoutMs: config['turn.stall_timeout'],
    onQuestion: onQuestion[wishes?.onQuestion ?? OnQuestion.UNSPECIFIED],
    questionTimeoutMs: msOf(wishes?.questionTimeout) ?? config['question.timeout'],
    sandbox: sandboxPolicyOf(wishes?.sandbox, `${wish.wishesField}.sandbox`, config),
  }
}

/** @throws TuttiError `invalid_argument` for a mount that no agent may have; whether it exists only its worker knows. */
export function sandboxPolicyOf(
  spec: SandboxSpec | undefined,
  field: string,
  config: ApiConfig,
): SandboxPolicy {
  const wished = spec?.limits
  for (const [index, path] of (spec?.mounts ?? []).entries()) {
    const problem = mountProblem(path, config['data.dir'] === '' ? [] : [config['data.dir']])
    if (!problem) continue
    const at = `${field}.mounts[${index}]`
    throw new TuttiError(
      'invalid_argument',
      `${at}: ${path} cannot be mounted: ${problem}. Mount only what the agent needs.`,
      { field: at, path },
    )
  }
  return {
    isolation: spec?.isolation === Isolation.NONE ? 'none' : 'bubblewrap',
    allowHosts: spec?.allowHosts ?? [],
    allowNetwork: spec?.allowNetwork ?? false,
    envNames: spec?.env ?? [],
    envValues: spec?.envValues ?? {},
    mounts: spec?.mounts ?? [],
    limits: {
      memoryBytes: countOf(wished?.memoryBytes) ?? config['sandbox.memory'],
      pids: wished?.pids ?? config['sandbox.pids'],
      cpuPercent: wished?.cpu === undefined ? config['sandbox.cpu'] : Math.round(wished.cpu * 100),
      diskBytes: countOf(wished?.diskBytes) ?? config['sandbox.disk'],
      files: countOf(wished?.files) ?? config['sandbox.files'],
      fileBytes: countOf(wished?.fileSizeBytes) ?? config['sandbox.file_size'],
    },
  }
}

/** Durations that a workflow needs beside the ids. */
export function timingsOf(agent: AgentConfig, config: ApiConfig): AgentTimings {
  return {
    turnTimeoutMs: agent.turnTimeoutMs,
    inactivityMs: config['agent.inactivity'],
    heartbeatMs: config['turn.heartbeat_timeout'],
    readyTimeoutMs: agent.readyTimeoutMs,
    checkTimeoutMs: agent.checkTimeoutMs,
  }
}

export function deliveryModeOf(mode: PullRequestMode, config: ApiConfig): DeliveryPlan['mode'] {
  switch (mode) {
    case PullRequestMode.NONE:
      return 'none'
    case PullRequestMode.DRAFT:
      return 'draft'
    case PullRequestMode.READY:
      return 'ready'
    case PullRequestMode.UNSPECIFIED:
      return config['deliver.mode'] === 'none' || config['deliver.mode'] === 'draft'
        ? config['deliver.mode']
        : 'ready'
  }
}

export const msOf = (duration: Duration | undefined): number | undefined =>
  duration && Number(duration.seconds) * 1000 + Math.ceil(duration.nanos / 1e6)

const onQuestion: Record<OnQuestion, AgentConfig['onQuestion']> = {
  [OnQuestion.UNSPECIFIED]: 'wait',
  [OnQuestion.WAIT]: 'wait',
  [OnQuestion.FAIL]: 'fail',
  [OnQuestion.DEFAULT]: 'default',
}

/** A model is a brain of the embedded agent; another program is told its model in its own words. */
function agentSpecOf(agent: AgentSpec | undefined, field: string, config: ApiConfig): string {
  const text = agent?.spec || config['agent.default']
  const parsed = parseAgentSpec(text, `${field}.spec`)
  if (!agent?.model) return text
  if (parsed.kind === 'embedded' && parsed.brain === 'auto') {
    const named = `embedded:${agent.model}`
    parseAgentSpec(named, `${field}.model`)
    return named
  }
  throw new TuttiError(
    'invalid_argument',
    `${field}.model goes with "embedded" only; name the model in the spec itself here.`,
    { field: `${field}.model` },
  )
}

/** Limits beyond what a number holds exactly are no limits at all. */
const countOf = (value: bigint | undefined): number | undefined =>
  value === undefined ? undefined : Math.min(Number(value), Number.MAX_SAFE_INTEGER)
