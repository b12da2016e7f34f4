import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  isRejection,
  reduceAgent,
  turnPosition,
  type AgentCommand,
  type AgentInput,
} from './agent-reducer.ts'
import {
  agentStateKey,
  agentStateKeys,
  initialAgentState,
  isAtRest,
  type AgentState,
  type AgentStateKey,
  type Turn,
} from './agent-state.ts'
import { limits } from './limits.ts'
import { reasons, type Reason } from './reasons.ts'

const turn = (turnId: string): Turn => ({ turnId, promptBlobId: `sha256_${'0'.repeat(64)}`, source: 'API' })
const [current, waiting, sent] = [turn('current'), turn('waiting'), turn('sent')]

const command = {
  follow_up: { type: 'follow_up', turn: sent },
  interrupt: { type: 'interrupt', turn: sent },
  stop: { type: 'stop', all: false },
  pause: { type: 'pause' },
  resume: { type: 'resume' },
  archive: { type: 'archive' },
  deliver: { type: 'deliver' },
  recover: { type: 'recover' },
  expire: { type: 'expire' },
} as const satisfies Record<AgentCommand['type'], AgentCommand>
const commands = Object.keys(command) as AgentCommand['type'][]

/** Each state once with nothing waiting and once with one waiting turn. */
function stateOf(key: AgentStateKey, queue: readonly Turn[]): AgentState {
  switch (key) {
    case 'UNSPECIFIED':
      return { ...initialAgentState, queue }
    case 'RUNNING':
      return { status: 'RUNNING', paused: false, current, queue }
    case 'IDLE':
    case 'ERROR':
      return { status: key, paused: false, reason: key === 'IDLE' ? 'completed' : 'agent_error', queue }
    case 'IDLE+paused':
      return { status: 'IDLE', paused: true, reason: 'paused', queue }
    case 'ERROR+paused':
      return { status: 'ERROR', paused: true, reason: 'agent_error', queue }
    case 'ARCHIVED':
      return { status: 'ARCHIVED', paused: false, reason: 'archived', queue }
    case 'EXPIRED':
      return { status: 'EXPIRED', paused: false, reason: 'expired', queue: [] }
  }
}

/**
 * The design's table (§4), written down once more: the state afterwards, then for a message its place, `same` when nothing
 * changes, `waits`/`idle` for a resume with and without waiting turns, or the way out of a refusal.
 */
type Cell =
  | { to: AgentStateKey; place?: 0 | 1 | 2; ending?: AgentState['ending']; reason?: Reason }
  | { same: true }
  | { resume: true }
  | { refused: RegExp }

const same: Cell = { same: true }
const resumes: Cell = { resume: true }
const message: Cell = { refused: /send it a message/ }
const resumeFirst: Cell = { refused: /Resume the agent first/ }
const startNew: Cell = { refused: /Start a new agent from its last commit/ }
const archived: Cell = { to: 'ARCHIVED', reason: 'archived' }
const expired: Cell = { to: 'EXPIRED', reason: 'expired' }

const table: Record<AgentStateKey, Record<AgentCommand['type'], Cell>> = {
  UNSPECIFIED: {
    follow_up: { to: 'RUNNING', place: 0 },
    interrupt: message,
    stop: message,
    pause: message,
    resume: message,
    archive: archived,
    deliver: message,
    recover: message,
    expire: expired,
  },
  RUNNING: {
    follow_up: { to: 'RUNNING', place: 1 },
    interrupt: { to: 'RUNNING', place: 1, ending: 'interrupted' },
    stop: { to: 'RUNNING', ending: 'stopped_by_user' },
    pause: { to: 'RUNNING', ending: 'paused' },
    resume: same,
    archive: { to: 'ARCHIVED', ending: 'archived' },
    deliver: { refused: /Wait until the turn has ended, or stop it/ },
    recover: same,
    expire: { to: 'EXPIRED', ending: 'expired' },
  },
  IDLE: {
    follow_up: { to: 'RUNNING', place: 0 },
    interrupt: { to: 'RUNNING', place: 0 },
    stop: same,
    pause: { to: 'IDLE+paused' },
    resume: same,
    archive: archived,
    deliver: same,
    recover: same,
    expire: expired,
  },
  'IDLE+paused': {
    follow_up: { to: 'IDLE+paused', place: 1 },
    interrupt: { to: 'IDLE+paused', place: 1 },
    stop: same,
    pause: same,
    resume: resumes,
    archive: archived,
    deliver: same,
    recover: same,
    expire: expired,
  },
  ERROR: {
    follow_up: { to: 'RUNNING', place: 0 },
    interrupt: { to: 'RUNNING', place: 0 },
    stop: same,
    pause: { to: 'ERROR+paused', reason: 'agent_error' },
    resume: resumes,
    archive: archived,
    deliver: same,
    recover: same,
    expire: expired,
  },
  'ERROR+paused': {
    follow_up: { to: 'ERROR+paused', place: 1 },
    interrupt: { to: 'ERROR+paused', place: 1 },
    stop: same,
    pause: same,
    resume: resumes,
    archive: archived,
    deliver: same,
    recover: same,
    expire: expired,
  },
  ARCHIVED: {
    follow_up: resumeFirst,
    interrupt: resumeFirst,
    stop: same,
    pause: resumeFirst,
    resume: resumes,
    archive: same,
    deliver: same,
    recover: resumeFirst,
    expire: expired,
  },
  EXPIRED: {
    follow_up: startNew,
    interrupt: startNew,
    stop: same,
    pause: startNew,
    resume: startNew,
    archive: startNew,
    deliver: same,
    recover: startNew,
    expire: same,
  },
}

/** IDLE, UNSPECIFIED: a turn never waits there, since it would run. */
const queues = (key: AgentStateKey): readonly (readonly Turn[])[] =>
  ['IDLE', 'UNSPECIFIED', 'EXPIRED'].includes(key) ? [[]] : [[], [waiting]]

describe('API-12: the answer to each command in each state is the published table', () => {
  const cells = agentStateKeys.flatMap((key) =>
    queues(key).flatMap((queue) => commands.map((name) => [key, name, queue] as const)),
  )
  test.for(cells)('%s × %s with %j waiting', ([key, name, queue]) => {
    const cell = table[key][name]
    const before = stateOf(key, queue)
    const after = reduceAgent(before, command[name])
    if ('refused' in cell) {
      expect(after).toMatchObject({ rejected: true, state: key })
      if (!isRejection(after)) throw new Error('accepted')
      expect(after.message).toContain(`The agent is ${key}.`)
      expect(after.message).toMatch(cell.refused)
      return
    }
    if (isRejection(after)) throw new Error(after.message)
    if ('same' in cell) return expect(after).toBe(before)
    if ('resume' in cell) {
      expect(agentStateKey(after)).toBe(queue.length > 0 ? 'RUNNING' : 'IDLE')
      expect(after.current).toEqual(queue[0])
      return expect(after.queue).toEqual([])
    }
    expect(agentStateKey(after)).toBe(cell.to)
    expect(after.ending).toBe(cell.ending)
    if (cell.reason) expect(after.reason).toBe(cell.reason)
    if (name !== 'follow_up' && name !== 'interrupt') return
    // One that waits already is ahead of a follow-up; an interrupt goes before it.
    const isAhead = queue.length > 0 && name === 'follow_up' && cell.place !== undefined
    if (cell.to === 'RUNNING' && cell.place === 0) {
      expect([after.current, ...after.queue]).toEqual(isAhead ? [waiting, sent] : [sent, ...queue])
    }
    expect(turnPosition(after, 'sent')).toBe((cell.place ?? 0) + (isAhead ? 1 : 0))
  })

  test.for(agentStateKeys.flatMap((key) => commands.map((name) => [key, name] as const)))(
    '%s × %s twice in a row: a command that carries no message is idempotent',
    ([key, name]) => {
      const once = reduceAgent(stateOf(key, []), command[name])
      if (isRejection(once)) return expect(reduceAgent(stateOf(key, []), command[name])).toEqual(once)
      if (name === 'follow_up' || name === 'interrupt') return
      expect(reduceAgent(once, command[name])).toBe(once)
    },
  )
})

describe('a queue that is full', () => {
  const full = Array.from({ length: limits.maxWaitingTurns }, (_, index) =>
    turn(`turn-00000000-0000-7000-8000-${String(index).padStart(12, '0')}`),
  )

  test.for([
    ['RUNNING', { type: 'stop', all: true }, /^The agent is RUNNING\. 64 messages wait .* stop the agent/],
    ['IDLE+paused', { type: 'resume' }, /^The agent is IDLE\+paused\. 64 messages wait .* Resume the agent/],
    [
      'ERROR+paused',
      { type: 'resume' },
      /^The agent is ERROR\+paused\. 64 messages wait .* Resume the agent/,
    ],
  ] as const)('%s takes no more messages, and the way out makes room', ([key, wayOut, words]) => {
    const before = stateOf(key, full)
    for (const name of ['follow_up', 'interrupt'] as const) {
      const answer = reduceAgent(before, command[name])
      expect(answer).toMatchObject({ rejected: true, state: key })
      expect(isRejection(answer) && answer.message).toMatch(words)
    }
    const after = reduceAgent(before, wayOut)
    expect(!isRejection(after) && after.queue.length).toBeLessThan(limits.maxWaitingTurns)
    expect(isRejection(reduceAgent(stateOf(key, full.slice(1)), command.follow_up))).toBe(false)
  })

  test('ERROR takes one more, since the first of them begins', () => {
    for (const name of ['follow_up', 'interrupt'] as const) {
      expect(reduceAgent(stateOf('ERROR', full), command[name])).toMatchObject({
        status: 'RUNNING',
        queue: { length: limits.maxWaitingTurns },
      })
    }
  })

  test('is an argument of Temporal’s still', () => {
    const bytes = Buffer.byteLength(JSON.stringify(stateOf('RUNNING', full)))
    expect(bytes).toBeLessThan(limits.maxArgumentBytes)
  })
})

describe('how a turn ends', () => {
  const running = stateOf('RUNNING', [waiting])
  const ended = (reason: Reason, failed = false): AgentInput => ({ type: 'turn_ended', reason, failed })
  const after = (...inputs: AgentInput[]) =>
    inputs.reduce<AgentState>((state, input) => {
      const next = reduceAgent(state, input)
      if (isRejection(next)) throw new Error(next.message)
      return next
    }, running)

  test('the next waiting turn runs; a failure lets it wait', () => {
    expect(after(ended('completed'))).toEqual({
      status: 'RUNNING',
      paused: false,
      current: waiting,
      queue: [],
    })
    expect(after(ended('agent_error', true))).toEqual({
      status: 'ERROR',
      paused: false,
      reason: 'agent_error',
      queue: [waiting],
    })
    expect(after(ended('completed'), ended('stopped_by_user'))).toMatchObject({
      status: 'IDLE',
      reason: 'stopped_by_user',
    })
  })

  test('a stop of all drops the waiting turns too', () => {
    expect(after({ type: 'stop', all: true }, ended('stopped_by_user'))).toMatchObject({
      status: 'IDLE',
      queue: [],
    })
  })

  test('a pause keeps the turn first in the queue; a resume before it has ended lets it go on', () => {
    const paused = after(command.pause, ended('paused'))
    expect(paused).toMatchObject({ status: 'IDLE', paused: true, reason: 'paused' })
    expect(paused.queue).toEqual([{ ...current, begun: true }, waiting])
    expect(after(command.pause, command.resume, ended('paused'))).toMatchObject({
      status: 'RUNNING',
      current: { ...current, begun: true },
      queue: [waiting],
    })
  })

  test('the first word decides how it ends, but a pause gives way to a real end', () => {
    expect(after(command.pause, command.stop).ending).toBe('stopped_by_user')
    expect(after(command.stop, command.interrupt).ending).toBe('stopped_by_user')
    expect(after(command.stop, command.pause, ended('stopped_by_user'))).toMatchObject({
      status: 'IDLE',
      paused: true,
    })
  })

  test('an archive or expiry that was accepted counts at once and wins over how the turn ends', () => {
    expect(agentStateKey(after(command.archive))).toBe('ARCHIVED')
    expect(after(command.archive, ended('agent_error', true))).toMatchObject({
      status: 'ARCHIVED',
      queue: [waiting],
    })
    expect(after(command.archive, command.resume, ended('archived'))).toMatchObject({ status: 'RUNNING' })
    expect(after(command.archive, command.expire, ended('archived'))).toMatchObject({
      status: 'EXPIRED',
      queue: [],
    })
    expect(after(command.expire, ended('completed'))).toMatchObject({ status: 'EXPIRED', reason: 'expired' })
  })

  test('nothing ends where nothing runs, and nothing is cut', () => {
    const idle = stateOf('IDLE', [])
    expect(reduceAgent(idle, ended('completed'))).toBe(idle)
    expect(reduceAgent(idle, { type: 'turn_cut' })).toBe(idle)
  })

  test('a turn that is cut has begun, and what it was told stays', () => {
    expect(after(command.stop, { type: 'turn_cut' })).toEqual({
      ...running,
      current: { ...current, begun: true },
      ending: 'stopped_by_user',
    })
  })
})

describe('in every order of commands and ends', () => {
  const anyCommand = fc.oneof(
    fc.constantFrom('follow_up' as const, 'interrupt' as const),
    fc.constantFrom(
      'pause' as const,
      'resume' as const,
      'archive' as const,
      'deliver' as const,
      'recover' as const,
      'expire' as const,
    ),
    fc.constantFrom('stop' as const, 'stop_all' as const),
    fc.constantFrom('completed' as const, 'told' as const, 'failed' as const, 'paused' as const),
    fc.constant('turn_cut' as const),
  )

  test('the machine is total, runs exactly when it has a turn, and loses or doubles none', () => {
    fc.assert(
      fc.property(fc.array(anyCommand, { maxLength: 60 }), (words) => {
        let state: AgentState = initialAgentState
        const open = new Set<string>()
        let count = 0
        for (const word of words) {
          const input = inputOf(word, state, `t${(count += 1)}`)
          const next = reduceAgent(state, input)
          if (isRejection(next)) {
            expect(next.state).toBe(agentStateKey(state))
            expect(next.message).toContain(next.state)
            continue
          }
          if ('turn' in input) open.add(input.turn.turnId)
          if (input.type === 'stop' && input.all && agentStateKey(state) === 'RUNNING')
            for (const dropped of state.queue) open.delete(dropped.turnId)
          if (input.type === 'turn_ended' && input.reason !== 'paused' && state.current)
            open.delete(state.current.turnId)
          if (next.status === 'EXPIRED') open.clear()
          state = next

          const held = [...(state.current ? [state.current] : []), ...state.queue].map((held) => held.turnId)
          expect(new Set(held).size).toBe(held.length)
          expect(new Set(held)).toEqual(open)
          expect(state.status === 'RUNNING').toBe(state.current !== undefined)
          expect(state.paused && state.status === 'RUNNING').toBe(false)
          if (state.status !== 'RUNNING') expect([state.ending, state.next]).toEqual([undefined, undefined])
          if (state.status === 'IDLE' && !state.paused) expect(state.queue).toEqual([])
          if (isAtRest(state)) expect(Object.keys(reasons)).toContain(state.reason)
        }
      }),
      { numRuns: 500 },
    )
  })

  function inputOf(word: string, state: AgentState, turnId: string): AgentInput {
    switch (word) {
      case 'follow_up':
      case 'interrupt':
        return { type: word, turn: turn(turnId) }
      case 'stop':
      case 'stop_all':
        return { type: 'stop', all: word === 'stop_all' }
      case 'told':
        return { type: 'turn_ended', reason: state.ending ?? 'completed', failed: false }
      case 'completed':
      case 'paused':
        return { type: 'turn_ended', reason: word, failed: false }
      case 'failed':
        return { type: 'turn_ended', reason: 'agent_error', failed: true }
      default:
        return {
          type: word as 'pause' | 'resume' | 'archive' | 'deliver' | 'recover' | 'expire' | 'turn_cut',
        }
    }
  }
})
