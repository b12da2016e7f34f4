import type {
  AgentCommand,
  AgentId,
  AgentState,
  AgentStateKey,
  AgentStatus,
  BlobId,
  EnsembleId,
  Reason,
  Turn,
} from '@tutti/core'

/** Registered names of the workflow types. */
export const workflowTypes = { agent: 'cloudAgent', ensemble: 'parallelAgents' } as const

/** Updates of an agent: one for each command of the state machine, under the command's name. */
export const agentUpdates = [
  'follow_up',
  'interrupt',
  'stop',
  'pause',
  'resume',
  'archive',
  'deliver',
  'recover',
  'expire',
] as const satisfies readonly AgentCommand['type'][]

export const ensembleUpdates = { stop: 'stop' } as const

/** Asks an idle agent to give its sandbox to somebody who waits. */
export const releaseSandboxSignal = 'release_sandbox'

/** Tells whether the running turn waits for an answer: a `TurnWaiting`. */
export const turnWaitingSignal = 'turn_waiting'

/** Query: {@link AgentView} as JSON. */
export const agentStateQuery = 'state'

/** An agent's update: the command, and who asks. The request id is also the update id. */
export interface CommandRequest {
  readonly requestId: string
  readonly command: AgentCommand
  /** For `deliver`: the delivery plan, as a JSON blob. */
  readonly planBlobId?: BlobId
}

/** The answer of the state machine; a refusal is an update failure of type `refused`. */
export interface CommandAnswer {
  readonly state: AgentStateKey
  /** For a turn: turns ahead of it, 0 when it runs at once. -1 otherwise. */
  readonly position: number
  /** For a turn: its id; of the first answer when the request was sent before. */
  readonly turnId: string
  /** The turn that is being ended by this command, so that the caller can reach it at once through the log. */
  readonly endingTurnId: string
  /** For a `recover` that cuts a turn off: the sandbox that is to be replaced, so that no later one is taken for it. */
  readonly incarnation?: number
}

/** Durations in milliseconds; from the configuration of whoever starts the workflow. */
export interface AgentTimings {
  readonly turnTimeoutMs: number
  readonly inactivityMs: number
  readonly heartbeatMs: number
  readonly readyTimeoutMs: number
  readonly checkTimeoutMs: number
}

/** Input of `cloudAgent`; at most 16 KiB. */
export interface CloudAgentInput {
  readonly bcId: AgentId
  readonly owner: string
  readonly title: string
  readonly repository: string
  readonly configBlobId: BlobId
  readonly state: AgentState
  readonly incarnation: number
  readonly turns: number
  readonly hadSandbox: boolean
  /** The first turn of a new agent. */
  readonly firstTurn?: Turn
  /** The ensemble that it belongs to: it then returns as soon as its queue is empty. */
  readonly ensembleId?: EnsembleId
  /** The ensemble that made it, also after it has left that: whose trace its work belongs to. */
  readonly memberOf?: EnsembleId
  /** Its agent has a check command, which runs after each completed turn. */
  readonly hasCheck: boolean
  readonly timings: AgentTimings
  /** Answers of requests seen by the run before; only set by continue-as-new. */
  readonly seen?: readonly (readonly [string, CommandAnswer])[]
  /** What the run before accepted and did not get to; only set by continue-as-new. */
  readonly errands?: readonly Errand[]
  /** The same, of runs that knew no other errand. */
  readonly deliveries?: readonly Delivery[]
  /** Forces continue-as-new after this many history events; for tests. */
  readonly testMaxHistory?: number
}

/** What is done between turns, in the order in which it was accepted. */
export type Errand = Delivery | Recovery

/** An accepted `recover`: who asked, and the log position whose workspace the agent shall have; absent: the newest. */
export interface Recovery {
  readonly type: 'recover'
  readonly requestId: string
  readonly at?: number
}

/** An accepted `deliver`: who asked, and the delivery plan as a JSON blob. */
export interface Delivery {
  readonly type?: 'deliver'
  readonly requestId: string
  readonly planBlobId?: BlobId
}

/** What a run of `cloudAgent` returns: where the agent stands. */
export interface CloudAgentResult {
  readonly bcId: AgentId
  readonly status: AgentStatus
  readonly reason: Reason
}

/** What differs between the children of an ensemble. */
export interface ChildInput {
  readonly bcId: AgentId
  readonly configBlobId: BlobId
  readonly promptBlobId: BlobId
  readonly title: string
}

/** Input of `parallelAgents`; at most 16 KiB. */
export interface ParallelAgentsInput {
  readonly ensembleId: EnsembleId
  readonly owner: string
  readonly title: string
  readonly repository: string
  readonly configBlobId: BlobId
  readonly children: readonly ChildInput[]
  readonly hasCheck: boolean
  readonly ensembleTimeoutMs: number
  readonly timings: AgentTimings
}

export interface ParallelAgentsResult {
  readonly ensembleId: EnsembleId
  readonly phase: 'COMPLETED' | 'ERROR'
  readonly reason: Reason
}
