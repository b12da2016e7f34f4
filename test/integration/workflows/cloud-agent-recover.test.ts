import { randomUUID } from 'node:crypto'
import type { AgentCommand } from '@tutti/core'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import type { StubActivities } from './stub-activities.ts'
import { completed, refused, sandboxLost, stateOf, stopped, story, untilStatus } from './story.ts'
import { agentInput, newTurn, startTemporal, type TemporalForTests } from './world.ts'

const server = inject('temporalServer')
const recover: AgentCommand = { type: 'recover' }

/** Each sandbox that was asked for: its number, and the recovery that it answers. */
const sandboxes = (stubs: StubActivities) =>
  stubs.calls.flatMap(({ name, input }) => {
    if (name !== 'provisionSandbox') return []
    const { incarnation, recovery } = input as {
      incarnation: number
      recovery?: { requestId: string; at?: number }
    }
    return [[incarnation, recovery?.requestId, ...(recovery?.at === undefined ? [] : [recovery.at])]]
  })

describe.skipIf(!server)('cloudAgent: a recovery by hand', () => {
  let temporal: TemporalForTests
  beforeAll(async () => {
    temporal = await startTemporal(server!)
  })
  afterAll(() => temporal?.close())

  test('at rest: the sandbox is replaced, also when there is none; the state stays; the same request is one', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const agent = await startAgent(agentInput())
      await untilStatus(agent, 'IDLE')
      const answer = await agent.send(recover, 'r1')
      expect(answer).toMatchObject({ state: 'IDLE', turnId: '', endingTurnId: '' })
      await vi.waitFor(() =>
        expect(sandboxes(stubs)).toEqual([
          [1, undefined],
          [2, 'r1'],
        ]),
      )
      expect(await agent.send(recover, 'r1')).toEqual(answer)
      await agent.send({ type: 'pause' })
      await agent.send({ type: 'recover', at: 7 }, 'r2')
      await vi.waitFor(() => expect(sandboxes(stubs).slice(2)).toEqual([[3, 'r2', 7]]))
      expect(await stateOf(agent)).toMatchObject({ status: 'IDLE', paused: true })
      await agent.send({ type: 'archive' })
      await agent.result()
      expect(stubs.callsOf('releaseSandbox')).toBe(3)
      expect(story(stubs, agent.bcId)).not.toContain('recovery_failed')
    }))

  test('a running turn is cut off and goes on in the new sandbox; two at once are two', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput())
      const first = await next()
      expect(first.input.continued).toBe(false)
      const answers = await Promise.all([agent.send(recover, 'r1'), agent.send(recover, 'r2')])
      expect(answers.map(({ state }) => state)).toEqual(['RUNNING', 'RUNNING'])
      expect(answers).toContainEqual(expect.objectContaining({ endingTurnId: 'turn-1', incarnation: 1 }))
      const again = await next()
      expect(again.input).toMatchObject({ incarnation: 3, continued: true, number: 1 })
      again.finish(completed)
      await untilStatus(agent, 'IDLE')
      await agent.send({ type: 'archive' })
      await agent.result()
      const made = sandboxes(stubs)
      expect(made.map(([incarnation]) => incarnation)).toEqual([1, 2, 3])
      expect(new Set(made.map(([, asked]) => asked))).toEqual(new Set([undefined, 'r1', 'r2']))
      const said = story(stubs, agent.bcId)
      expect(said.filter((line) => /^(message|ended|interrupted)/.test(line))).toEqual([
        'message turn-1',
        'interrupted turn-1 0',
        'ended turn-1 completed',
      ])
    }))

  test.for([
    ['stopped', async () => stopped],
    ['handed over', async () => Promise.reject(sandboxLost('planned', 'requested'))],
  ] as const)('a turn that was %s for it is no end, and the log says that it was cut', ([, end]) =>
    temporal.run(async ({ stubs, startAgent }) => {
      const begun = Promise.withResolvers<void>()
      const told = Promise.withResolvers<void>()
      stubs.on('runTurn', async (_input, call) => {
        if (call > 1) return completed
        begun.resolve()
        await told.promise
        return end()
      })
      const agent = await startAgent(agentInput())
      await begun.promise
      await agent.send(recover, 'r1')
      told.resolve()
      await untilStatus(agent, 'IDLE')
      await agent.send({ type: 'archive' })
      await agent.result()
      expect(sandboxes(stubs)).toEqual([
        [1, undefined],
        [2, 'r1'],
      ])
      expect(story(stubs, agent.bcId).filter((line) => /^(ended|interrupted)/.test(line))).toEqual([
        'interrupted turn-1 0',
        'ended turn-1 completed',
      ])
      const [cut] = stubs.events(agent.bcId).filter((event) => event.type === 'turn_interrupted')
      expect(cut).toMatchObject({ incarnation: 1, reason: 'requested' })
      expect(stubs.callsOf('checkpointTurn')).toBe(1)
    }),
  )

  test('a turn that waits for its slot keeps its place: its sandbox is the answer', () =>
    temporal.run(async ({ stubs, startAgent, taskQueue }) => {
      const slot = stubs.hold('admit')
      const agent = await startAgent(agentInput())
      const waiting = await slot()
      expect((await agent.send(recover, 'r1')).incarnation).toBeUndefined()
      waiting.finish({ hostQueue: taskQueue })
      await untilStatus(agent, 'IDLE')
      expect([sandboxes(stubs), stubs.callsOf('admit')]).toEqual([[[1, 'r1']], 1])
      await agent.send({ type: 'archive' })
      await agent.result()
    }))

  test('a worker that is lost while it recovers is replaced; what fails is told, and the agent stays as it was', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const agent = await startAgent(agentInput())
      await untilStatus(agent, 'IDLE')
      stubs.on('provisionSandbox', async ({ recovery }, call) => {
        if (recovery?.requestId === 'r1' && call === 2) throw sandboxLost()
        if (recovery?.requestId === 'r2') throw Object.assign(sandboxLost(), { type: 'data_loss' })
      })
      await agent.send(recover, 'r1')
      await vi.waitFor(() =>
        expect(sandboxes(stubs).slice(1)).toEqual([
          [2, 'r1'],
          [3, 'r1'],
        ]),
      )
      await agent.send(recover, 'r2')
      await vi.waitFor(() =>
        expect(stubs.events(agent.bcId).at(-1)).toEqual({
          type: 'recovery_failed',
          requestId: 'r2',
          reason: 'data_loss',
          detail: 'gone',
        }),
      )
      // Without a sandbox there is nothing to wait for.
      expect(await agent.result()).toMatchObject({ status: 'IDLE', reason: 'completed' })
    }))

  test('an archive does not wait for it, and ends it', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const agent = await startAgent(agentInput())
      await untilStatus(agent, 'IDLE')
      const making = stubs.hold('provisionSandbox')
      await agent.send(recover, 'r1')
      await making()
      await agent.send({ type: 'archive' })
      expect(await agent.result()).toMatchObject({ status: 'ARCHIVED' })
      expect(stubs.events(agent.bcId).at(-1)).toEqual({
        type: 'recovery_failed',
        requestId: 'r1',
        reason: 'archived',
      })
      expect(stubs.callsOf('releaseSandbox')).toBe(2)
    }))

  test('an agent that has not begun, is archived or has expired refuses it with the way out', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const releasing = stubs.hold('releaseSandbox')
      const agent = await startAgent(agentInput())
      await untilStatus(agent, 'IDLE')
      await agent.send({ type: 'archive' })
      const release = await releasing()
      expect(await refused(agent.send(recover))).toMatch(/^refused: The agent is ARCHIVED\. Resume/)
      release.finish()
      await agent.result()
    }))

  test('continue-as-new carries it, and it comes before the turns that wait', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput({ testMaxHistory: 10 }))
      await next()
      await agent.send({ type: 'follow_up', turn: newTurn('f1') })
      const requestId = randomUUID()
      const releasing = stubs.hold('releaseSandbox')
      await agent.send({ type: 'interrupt', turn: newTurn('f2') })
      const release = await releasing()
      await agent.send(recover, requestId)
      release.finish()
      stubs.on('releaseSandbox', async () => {})
      for (const turnId of ['f2', 'f1']) {
        const call = await next()
        expect(call.input.turn.turnId).toBe(turnId)
        call.finish(completed)
      }
      await agent.result()
      expect(sandboxes(stubs).filter(([, asked]) => asked)).toEqual([[2, requestId]])
    }))
})
