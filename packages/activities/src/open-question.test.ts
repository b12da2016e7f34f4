import { randomBytes } from 'node:crypto'
import {
  agentId,
  ensembleId,
  initialAgentState,
  systemClock,
  type AgentConfig,
  type AgentId,
} from '@tutti/core'
import { decodeRunEvent, type TaskEvent } from '@tutti/protocol'
import { createSqliteStore, type SqliteStore } from '@tutti/store'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { ActivityDeps, TurnWaiting } from './deps.ts'
import { createOpenQuestion } from './open-question.ts'
import { createRunLogWriter } from './run-log-writer.ts'
import type { HostSession } from './sessions.ts'
import { createTurnControl, type TurnControl } from './turn-control.ts'

const never = new AbortController().signal
const bcId = agentId(Date.now(), randomBytes(10))
const question: Extract<TaskEvent, { type: 'agent_question' }> = {
  type: 'agent_question',
  questionId: 'q1',
  text: 'Which one?',
}
let store: SqliteStore
let control: TurnControl
let answers: string[]
let told: TurnWaiting[]

beforeEach(async () => {
  store = await createSqliteStore({ path: ':memory:' })
  await store.eventLog.create(bcId, 'local', never)
  await store.catalog.agents.insert(agent(bcId), never)
  control = createTurnControl({ timeoutMs: 60_000, stallMs: 60_000 })
  answers = []
  told = []
})
afterEach(async () => {
  vi.useRealTimers()
  control.close()
  await store.close()
})

/** Those of the question and of the turn; the store lives by its own, in its thread. */
const fakeTimers = () =>
  void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })

const agent = (id: AgentId) => ({
  bcId: id,
  owner: 'local',
  title: 't',
  repository: 'r',
  agentSpec: 'e',
  configBlobId: `sha256_${'0'.repeat(64)}` as const,
  createdAt: 1,
  state: initialAgentState,
})

async function open(config: Partial<AgentConfig>, id: AgentId = bcId) {
  const log = await createRunLogWriter({
    eventLog: store.eventLog,
    clock: systemClock,
    log: id,
    producer: { id: 'sandbox', epoch: 1 },
    signal: never,
  })
  const session = {
    bcId: id,
    owner: 'local',
    log,
    controller: new AbortController(),
    config: { onQuestion: 'wait', questionTimeoutMs: 60_000, stallTimeoutMs: 60_000, ...config },
    agent: { answer: (_id: string, text: string) => void answers.push(text) },
  } as unknown as HostSession
  // Only what a question uses.
  const deps = {
    catalog: store.catalog,
    eventLog: store.eventLog,
    log: { info() {}, warn() {} },
    tellWaiting: async (_bcId: string, waiting: TurnWaiting) => void told.push(waiting),
  } as unknown as ActivityDeps
  return createOpenQuestion(deps, session, control, 't1')
}

const shown = async () => (await store.catalog.agents.get('local', bcId, never)).openQuestion

test('a question waits visibly and is answered once, by its own id', async () => {
  const asking = await open({})
  await asking.asked(question)
  expect(await shown()).toEqual({ questionId: 'q1', text: 'Which one?' })
  await vi.waitFor(() => expect(told).toEqual([{ turnId: 't1', waits: true }]))
  asking.answer('c1', 'another', 'no')
  asking.answer('c2', 'q1', 'this one')
  asking.answer('c3', 'q1', 'too late')
  expect(answers).toEqual(['this one'])
  await vi.waitFor(async () => expect(await shown()).toBeUndefined())
  await vi.waitFor(() => expect(told.at(-1)).toEqual({ turnId: 't1', waits: false }))
  await vi.waitFor(async () => {
    const { records } = await store.eventLog.read(bcId, 0, {}, never)
    expect(records.map(decodeRunEvent)).toEqual([{ type: 'ack', commandId: 'c2' }])
  })
  expect(control.ended()).toBeUndefined()
})

test('options and default are shown too', async () => {
  const asking = await open({})
  await asking.asked({ ...question, options: ['a', 'b'], default: 'b' })
  expect(await shown()).toEqual({
    questionId: 'q1',
    text: 'Which one?',
    options: ['a', 'b'],
    default: 'b',
  })
  asking.close()
})

test('a child shows its question in the stream of its ensemble, and that it waits no more', async () => {
  const child = agentId(Date.now(), randomBytes(10))
  const ensemble = ensembleId(Date.now(), randomBytes(10))
  for (const log of [child, ensemble]) await store.eventLog.create(log, 'local', never)
  await store.catalog.agents.insert({ ...agent(child), ensembleId: ensemble, childIndex: 0 }, never)
  const asking = await open({}, child)
  const seen = async () => {
    const { records } = await store.eventLog.read(ensemble, 0, {}, never)
    return records.map(decodeRunEvent).map((event) => event.type === 'child' && event.child.question)
  }
  await asking.asked({ ...question, options: ['a', 'b'] })
  const { type: _, ...shownQuestion } = { ...question, options: ['a', 'b'] }
  expect(await seen()).toEqual([shownQuestion])
  asking.answer('c1', 'q1', 'a')
  await vi.waitFor(async () => expect(await seen()).toEqual([shownQuestion, undefined]))
})

const choices: { with: string; asked: typeof question; expected: string[] }[] = [
  { with: 'its default', asked: { ...question, default: 'a', options: ['b'] }, expected: ['a'] },
  { with: 'its first option', asked: { ...question, options: ['b', 'c'] }, expected: ['b'] },
  { with: 'nothing, when there is nothing to choose', asked: question, expected: [] },
]

test.for(choices)('by default a question is answered with $with', async ({ asked, expected }) => {
  const asking = await open({ onQuestion: 'default' })
  await asking.asked(asked)
  expect(answers).toEqual(expected)
  expect(control.ended()?.detail).toBe(
    expected.length > 0 ? undefined : 'The agent asked a question that has no default: Which one?',
  )
  asking.close()
})

test('fail ends the turn at once', async () => {
  const asking = await open({ onQuestion: 'fail' })
  await asking.asked(question)
  expect(control.ended()).toMatchObject({
    kind: 'limit',
    reason: 'agent_error',
    detail: 'The agent asked a question: Which one?',
  })
  asking.close()
  await vi.waitFor(async () => expect(await shown()).toBeUndefined())
})

test('nobody answers: the turn ends after the time for questions, and waiting is no stall until then', async () => {
  fakeTimers()
  control.close()
  control = createTurnControl({ timeoutMs: 60_000, stallMs: 400 })
  const asking = await open({ questionTimeoutMs: 1200, stallTimeoutMs: 400 })
  await asking.asked(question)
  await vi.advanceTimersByTimeAsync(1199)
  expect(control.ended()).toBeUndefined()
  await vi.advanceTimersByTimeAsync(1)
  expect(control.ended()?.detail).toBe('Nobody answered in time: Which one?')
  asking.close()
})

test('an answer that comes while the question is being made visible counts, and nothing waits any more', async () => {
  fakeTimers()
  const asking = await open({ questionTimeoutMs: 50 })
  const asked = asking.asked(question)
  asking.answer('c1', 'q1', 'quick')
  await asked
  expect(answers).toEqual(['quick'])
  await vi.advanceTimersByTimeAsync(1000)
  expect(control.ended()).toBeUndefined()
})
