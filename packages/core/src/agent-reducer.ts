import { agentStateKey, type AgentState, type AgentStateKey, type Turn } from './agent-state.ts'
import { limits } from './limits.ts'
import type { Reason } from './reasons.ts'

/** What a caller may ask of an agent: the columns of the design's table (§4). */
export type AgentCommand =
  | { readonly type: 'follow_up'; readonly turn: Turn }
  | { readonly type: 'interrupt'; readonly turn: Turn }
  | { readonly type: 'stop'; readonly all: boolean }
  | { readonly type: 'pause' }
  | { readonly type: 'resume' }
  | { readonly type: 'archive' }
  | { readonly type: 'deliver' }
  /** A new sandbox, whatever state the present one is in. `at`: with the workspace of this log position. */
  | { readonly type: 'recover'; readonly at?: number }
  | { readonly type: 'expire' }

/** What the workflow reports about the current turn. An end with `paused` puts the turn back to the front of the queue. */
export type AgentInput =
  | AgentCommand
  | { readonly type: 'turn_ended'; readonly reason: Reason; readonly failed: boolean }
  /** The turn is not over: it goes on in another sandbox. */
  | { readonly type: 'turn_cut' }

/** A refusal: FAILED_PRECONDITION with the current state and the way out. Nothing has changed. */
export interface Rejection {
  readonly rejected: true
  readonly state: AgentStateKey
  readonly message: string
}

export type AgentCommandType = AgentCommand['type']

type Answer =
  | 'same'
  | 'accepted'
  | ((state: AgentState, input: AgentCommand) => AgentState)
  | { readonly refuse: string }

const resumeFirst = { refuse: 'Resume the agent first.' }
const nothingStarted = { refuse: 'The agent has not started yet; send it a message.' }
const startNew = { refuse: 'Start a new agent from its last commit.' }

/** The design's table (§4): total over states and commands; a test walks every cell. */
const table: Record<AgentStateKey, Record<AgentCommandType, Answer>> = {
  UNSPECIFIED: {
    follow_up: enqueueAndRun,
    interrupt: nothingStarted,
    stop: nothingStarted,
    pause: nothingStarted,
    resume: nothingStarted,
    archive: (state) => rest(state, 'ARCHIVED', 'archived'),
    deliver: nothingStarted,
    recover: nothingStarted,
    expire: (state) => rest(state, 'EXPIRED', 'expired'),
  },
  RUNNING: {
    follow_up: enqueue,
    interrupt: (state, input) => enqueueFirst(end(state, 'interrupted'), input),
    stop: (state, input) => ({
      ...end(state, 'stopped_by_user'),
      queue: input.type === 'stop' && input.all && state.queue.length > 0 ? [] : state.queue,
    }),
    pause: (state) => ({ ...state, ending: state.ending ?? 'paused', next: 'paused' }),
    resume: (state) => omitNext(state),
    archive: (state) => ({ ...end(state, 'archived'), next: 'ARCHIVED' }),
    deliver: { refuse: 'Wait until the turn has ended, or stop it.' },
    recover: 'accepted',
    expire: (state) => ({ ...end(state, 'expired'), next: 'EXPIRED' }),
  },
  IDLE: {
    follow_up: enqueueAndRun,
    interrupt: enqueueFirstAndRun,
    stop: 'same',
    pause: (state) => ({ ...state, paused: true, reason: 'paused' }),
    resume: 'same',
    archive: (state) => rest(state, 'ARCHIVED', 'archived'),
    deliver: 'accepted',
    recover: 'accepted',
    expire: (state) => rest(state, 'EXPIRED', 'expired'),
  },
  'IDLE+paused': {
    follow_up: enqueue,
    interrupt: enqueueFirst,
    stop: 'same',
    pause: 'same',
    resume: (state) => runOrIdle(state),
    archive: (state) => rest(state, 'ARCHIVED', 'archived'),
    deliver: 'accepted',
    recover: 'accepted',
    expire: (state) => rest(state, 'EXPIRED', 'expired'),
  },
  ERROR: {
    follow_up: enqueueAndRun,
    interrupt: enqueueFirstAndRun,
    stop: 'same',
    pause: (state) => ({ ...state, paused: true }),
    resume: (state) => runOrIdle(state),
    archive: (state) => rest(state, 'ARCHIVED', 'archived'),
    deliver: 'accepted',
    recover: 'accepted',
    expire: (state) => rest(state, 'EXPIRED', 'expired'),
  },
  'ERROR+paused': {
    follow_up: enqueue,
    interrupt: enqueueFirst,
    stop: 'same',
    pause: 'same',
    resume: (state) => runOrIdle(state),
    archive: (state) => rest(state, 'ARCHIVED', 'archived'),
    deliver: 'accepted',
    recover: 'accepted',
    expire: (state) => rest(state, 'EXPIRED', 'expired'),
  },
  ARCHIVED: {
    follow_up: resumeFirst,
    interrupt: resumeFirst,
    stop: 'same',
    pause: resumeFirst,
    resume: (state) => (state.status === 'RUNNING' ? omitNext(state) : runOrIdle(state)),
    archive: 'same',
    deliver: 'accepted',
    recover: resumeFirst,
    expire: (state) =>
      state.status === 'RUNNING' ? { ...state, next: 'EXPIRED' } : rest(state, 'EXPIRED', 'expired'),
  },
  EXPIRED: {
    follow_up: startNew,
    interrupt: startNew,
    stop: 'same',
    pause: startNew,
    resume: startNew,
    archive: startNew,
    deliver: 'accepted',
    recover: startNew,
    expire: 'same',
  },
}

/**
 * The one state machine of an agent (design §4): used by its workflow, by the API for early refusals and by property tests.
 * Pure and total. A command that changes nothing returns the same object.
 */
export function reduceAgent(state: AgentState, input: AgentInput): AgentState | Rejection {
  if (input.type === 'turn_ended') return turnEnded(state, input.reason, input.failed)
  if (input.type === 'turn_cut')
    return state.current ? { ...state, current: { ...state.current, begun: true } } : state
  const key = agentStateKey(state)
  const answer = table[key][input.type]
  if (answer === 'same' || answer === 'accepted') return state
  if (typeof answer !== 'function') return rejection(key, answer.refuse)
  const next = answer(state, input)
  if ('turn' in input && next.queue.length > limits.maxWaitingTurns) return rejection(key, queueIsFull(state))
  return unlessEqual(state, next)
}

function rejection(state: AgentStateKey, wayOut: string): Rejection {
  return { rejected: true, state, message: `The agent is ${state}. ${wayOut}` }
}

function queueIsFull({ paused }: AgentState): string {
  const makeRoom = paused
    ? 'Resume the agent, so that it works on them.'
    : 'Wait for some of them, or stop the agent with all that waits.'
  return `${limits.maxWaitingTurns} messages wait for it, and more it does not take. ${makeRoom}`
}

/** The old object when nothing has changed: fields are compared by identity, since the table copies only what it changes. */
function unlessEqual(before: AgentState, after: AgentState): AgentState {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof AgentState>
  return [...names].every((name) => before[name] === after[name]) ? before : after
}

export const isRejection = (answer: AgentState | Rejection): answer is Rejection => 'rejected' in answer

/** Turns ahead of this one, the running one included; 0 means that it runs at once. -1 when it is not there. */
export function turnPosition(state: AgentState, turnId: string): number {
  if (state.current?.turnId === turnId) return 0
  const index = state.queue.findIndex((turn) => turn.turnId === turnId)
  return index < 0 ? -1 : index + 1
}

function turnOf(input: AgentCommand): Turn {
  if (input.type === 'follow_up' || input.type === 'interrupt') return input.turn
  throw new Error(`${input.type} carries no turn`)
}

function enqueue(state: AgentState, input: AgentCommand): AgentState {
  return { ...state, queue: [...state.queue, turnOf(input)] }
}

function enqueueFirst(state: AgentState, input: AgentCommand): AgentState {
  return { ...state, queue: [turnOf(input), ...state.queue] }
}

function enqueueAndRun(state: AgentState, input: AgentCommand): AgentState {
  return runOrIdle(enqueue(state, input))
}

function enqueueFirstAndRun(state: AgentState, input: AgentCommand): AgentState {
  return runOrIdle(enqueueFirst(state, input))
}

/** RUNNING with the first waiting turn, or IDLE with the reason of what ended last. */
function runOrIdle(state: AgentState, reason?: Reason): AgentState {
  const [current, ...queue] = state.queue
  if (current) return { status: 'RUNNING', paused: false, current, queue }
  return { status: 'IDLE', paused: false, queue: [], reason: reason ?? 'completed' }
}

function rest(state: AgentState, status: 'ARCHIVED' | 'EXPIRED', reason: Reason): AgentState {
  return { status, paused: false, reason, queue: status === 'EXPIRED' ? [] : state.queue }
}

/** The first word decides how the turn ends, except that a pause gives way to everything that really ends the turn. */
function end(state: AgentState, ending: NonNullable<AgentState['ending']>): AgentState {
  return { ...state, ending: state.ending && state.ending !== 'paused' ? state.ending : ending }
}

function omitNext(state: AgentState): AgentState {
  if (!state.next) return state
  const { next: _, ...rest } = state
  return rest
}

function turnEnded(state: AgentState, reason: Reason, failed: boolean): AgentState {
  if (state.status !== 'RUNNING' || !state.current) return state
  const queue = reason === 'paused' ? [{ ...state.current, begun: true }, ...state.queue] : state.queue
  const ended: AgentState = { ...state, queue }
  switch (state.next) {
    case 'ARCHIVED':
      return rest(ended, 'ARCHIVED', 'archived')
    case 'EXPIRED':
      return rest(ended, 'EXPIRED', 'expired')
    case 'paused':
      return { status: failed ? 'ERROR' : 'IDLE', paused: true, reason: failed ? reason : 'paused', queue }
    default:
      return failed ? { status: 'ERROR', paused: false, reason, queue } : runOrIdle(ended, reason)
  }
}
