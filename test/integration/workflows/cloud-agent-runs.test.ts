import { randomUUID } from 'node:crypto'
import { ApplicationFailure } from '@temporalio/common'
import { agentWorkflowId } from '@tutti/core'
import { releaseSandboxSignal } from '@tutti/workflows'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { agentInput, newTurn, startTemporal, type TemporalForTests } from './world.ts'
import { completed, sandboxLost, stateOf, story, untilStatus } from './story.ts'

const server = inject('temporalServer')

describe.skipIf(!server)('cloudAgent: rest, hand-over and replay', () => {
  let temporal: TemporalForTests
  beforeAll(async () => {
    temporal = await startTemporal(server!)
  })
  afterAll(() => temporal?.close())

  test('commands at rest: pause queues, resume runs in order, deliver goes before a later turn, a lent sandbox leaves the run open', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const agent = await startAgent(agentInput())
      await untilStatus(agent, 'IDLE')
      expect(await agent.send({ type: 'pause' })).toMatchObject({ state: 'IDLE+paused' })
      expect(await agent.send({ type: 'follow_up', turn: newTurn('f1') })).toMatchObject({ position: 1 })
      expect(await agent.send({ type: 'interrupt', turn: newTurn('f2') })).toMatchObject({ position: 1 })
      expect(await agent.send({ type: 'deliver' })).toMatchObject({ state: 'IDLE+paused', position: -1 })
      expect(await agent.send({ type: 'resume' })).toMatchObject({ state: 'RUNNING' })
      await untilStatus(agent, 'IDLE')
      const after = stubs.calls
        .map((call) => call.name)
        .slice(stubs.calls.findIndex((call) => call.name === 'deliverAgent'))
      expect(after.filter((name) => name === 'deliverAgent' || name === 'runTurn')).toEqual([
        'deliverAgent',
        'runTurn',
        'runTurn',
      ])
      const turnIds = stubs.calls
        .filter((call) => call.name === 'runTurn')
        .map((call) => (call.input as { turn: { turnId: string } }).turn.turnId)
      expect(turnIds).toEqual(['turn-1', 'f2', 'f1'])
      await agent.handle.signal(releaseSandboxSignal)
      await vi.waitFor(() => expect(stubs.callsOf('releaseSandbox')).toBe(1))
      expect(await stateOf(agent)).toMatchObject({ status: 'IDLE', reason: 'completed' })
      await agent.send({ type: 'archive' })
      expect(await agent.result()).toMatchObject({ status: 'ARCHIVED' })
      expect(stubs.callsOf('releaseSandbox')).toBe(1)
    }))

  test('a follow-up that arrives while the sandbox is being released runs once; the first turn is not repeated', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const agent = await startAgent(agentInput())
      await untilStatus(agent, 'IDLE')
      const releasing = stubs.hold('releaseSandbox')
      await agent.handle.signal(releaseSandboxSignal)
      const release = await releasing()
      expect(await agent.send({ type: 'follow_up', turn: newTurn('f1') })).toMatchObject({ position: 0 })
      release.finish()
      await vi.waitFor(() => expect(story(stubs, agent.bcId)).toContain('ended f1 completed'))
      const again = stubs.hold('releaseSandbox')
      await untilStatus(agent, 'IDLE')
      await agent.handle.signal(releaseSandboxSignal)
      ;(await again()).finish()
      await agent.send({ type: 'archive' })
      await agent.result()
      expect(story(stubs, agent.bcId).filter((line) => /^(message|ended|session)/.test(line))).toEqual([
        'session_start',
        'message turn-1',
        'ended turn-1 completed',
        'message f1',
        'ended f1 completed',
      ])
    }))

  test('a paused child keeps its run and its turn until it is resumed', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
      await next()
      await agent.send({ type: 'pause' })
      await vi.waitFor(async () =>
        expect(await stateOf(agent)).toMatchObject({ status: 'IDLE', paused: true }),
      )
      await agent.send({ type: 'resume' })
      ;(await next()).finish(completed)
      expect(await agent.result()).toMatchObject({ status: 'IDLE', reason: 'completed' })
      expect(stubs.callsOf('recordAttempt')).toBe(1)
    }))

  test('continue-as-new keeps queue, answers and deliveries, and repeats no turn and no message', () =>
    temporal.run(async ({ stubs, startAgent, env }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput({ testMaxHistory: 10 }))
      const first = await next()
      const firstRun = await agent.handle.describe()
      const requestId = randomUUID()
      const answer = await agent.send({ type: 'follow_up', turn: newTurn('f1') }, requestId)
      await agent.send({ type: 'follow_up', turn: newTurn('f2') })
      first.finish(completed)
      const second = await next()
      expect(second.input.turn.turnId).toBe('f1')
      expect((await agent.handle.describe()).runId).not.toBe(firstRun.runId)
      expect(await agent.send({ type: 'follow_up', turn: newTurn('x') }, requestId)).toEqual(answer)
      second.finish(completed)
      ;(await next()).finish(completed)
      await agent.result()
      const turns = stubs.calls.filter((call) => call.name === 'runTurn').map((call) => call.input)
      expect(turns).toMatchObject([
        { number: 1, turn: { turnId: 'turn-1' } },
        { number: 2, turn: { turnId: 'f1' } },
        { number: 3, turn: { turnId: 'f2' } },
      ])
      const said = story(stubs, agent.bcId)
      expect(said.filter((line) => /^(message|session)/.test(line))).toEqual([
        'session_start',
        'message turn-1',
        'message f1',
        'message f2',
      ])
      await expect(
        env.client.workflow.getHandle(agentWorkflowId(agent.bcId), firstRun.runId).describe(),
      ).resolves.toMatchObject({
        status: { name: 'CONTINUED_AS_NEW' },
      })
    }))

  test('commands that arrive while a full run hands over are in the log and in the next run', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput({ testMaxHistory: 10 }))
      const first = await next()
      await agent.send({ type: 'follow_up', turn: newTurn('f1') })
      const releasing = stubs.hold('releaseSandbox')
      first.finish(completed)
      const release = await releasing()
      await agent.send({ type: 'follow_up', turn: newTurn('f2') })
      release.finish()
      stubs.on('releaseSandbox', async () => {})
      for (const turnId of ['f1', 'f2']) {
        const call = await next()
        expect(call.input.turn.turnId).toBe(turnId)
        call.finish(completed)
      }
      await agent.result()
      expect(story(stubs, agent.bcId).filter((line) => line.startsWith('message'))).toEqual([
        'message turn-1',
        'message f1',
        'message f2',
      ])
    }))

  test('a log that refuses for good fails the run visibly, after the sandbox was given back', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      stubs.on('recordState', async () => {
        throw ApplicationFailure.create({
          type: 'data_loss',
          message: 'the record is damaged',
          nonRetryable: true,
        })
      })
      const agent = await startAgent(agentInput())
      await expect(agent.result()).rejects.toMatchObject({ cause: { cause: { type: 'data_loss' } } })
      expect(stubs.callsOf('runTurn')).toBe(0)
      expect(stubs.callsOf('releaseSandbox')).toBe(1)
    }))

  test('without a cache every step is a replay, and the story is the same', () =>
    temporal.run(
      async ({ stubs, startAgent }) => {
        const next = stubs.hold('runTurn')
        const agent = await startAgent(agentInput({ ensembleId: 'en-1', hasCheck: true }))
        ;(await next()).fail(sandboxLost())
        const second = await next()
        await agent.send({ type: 'follow_up', turn: newTurn('f1') })
        await agent.send({ type: 'interrupt', turn: newTurn('f2') })
        expect(second.input.incarnation).toBe(2)
        ;(await next()).finish(completed)
        ;(await next()).finish(completed)
        expect(await agent.result()).toMatchObject({ status: 'IDLE', reason: 'completed' })
        expect(story(stubs, agent.bcId).filter((line) => /^(ended|interrupted)/.test(line))).toEqual([
          'interrupted turn-1 1',
          'ended turn-1 interrupted',
          'ended f2 completed',
          'ended f1 completed',
        ])
      },
      { maxCachedWorkflows: 0 },
    ))
})
