import type { AgentStatus } from './agent-status.ts'
import type { BlobId } from './ids.ts'
import type { Reason } from './reasons.ts'

/** One prompt that is worked on until the agent stops. Carries ids only; the prompt is a blob. */
export interface Turn {
  readonly turnId: string
  readonly promptBlobId: BlobId
  /** Who sent it: `aiserver.v1.BackgroundComposerSource` without its prefix (seed 001). */
  readonly source: string
  /** The turn was begun before (paused, or its sandbox was lost): its user message is in the log already. */
  readonly begun?: boolean
}

/** What an agent's workflow knows. Plain JSON, carried between Temporal runs. */
export interface AgentState {
  readonly status: AgentStatus
  readonly paused: boolean
  /** Why the status is what it is; absent before the first turn ended. */
  readonly reason?: Reason
  /** The turn being worked on; only while RUNNING. */
  readonly current?: Turn
  /** Waiting turns, in order. */
  readonly queue: readonly Turn[]
  /** What the current turn was told to end with; it ends at its next safe point. */
  readonly ending?: 'stopped_by_user' | 'interrupted' | 'paused' | 'archived' | 'expired'
  /** The state to enter when the current turn has ended, if not the usual one. */
  readonly next?: 'paused' | 'ARCHIVED' | 'EXPIRED'
}

export const initialAgentState: AgentState = { status: 'UNSPECIFIED', paused: false, queue: [] }

/** A row of the design's table: the status, and whether it is paused. */
export const agentStateKeys = [
  'UNSPECIFIED',
  'RUNNING',
  'IDLE',
  'IDLE+paused',
  'ERROR',
  'ERROR+paused',
  'ARCHIVED',
  'EXPIRED',
] as const
export type AgentStateKey = (typeof agentStateKeys)[number]

/**
 * The row of the table that answers now. An archive or expiry that was accepted counts at once, although the turn still
 * needs a moment to reach its safe point.
 */
export function agentStateKey(state: AgentState): AgentStateKey {
  if (state.next === 'ARCHIVED' || state.next === 'EXPIRED') return state.next
  if (state.paused && (state.status === 'IDLE' || state.status === 'ERROR')) return `${state.status}+paused`
  return state.status
}

/** The status in a row's name: `IDLE` of `IDLE+paused`. */
export const statusOfKey = (key: AgentStateKey): AgentStatus => key.replace('+paused', '') as AgentStatus

/** The states in which no turn runs and none will without a new command: a stream ends after them (design §7). */
export const isAtRest = (state: Pick<AgentState, 'status'>): boolean =>
  state.status !== 'RUNNING' && state.status !== 'UNSPECIFIED'
