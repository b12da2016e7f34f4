import { randomUUID } from 'node:crypto'
import type { TurnWaiting } from '@tutti/activities'
import { type AgentState } from '@tutti/core'
import { turnWaitingSignal } from '@tutti/workflows'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { agentInput, newTurn, startTemporal, type TemporalForTests } from './world.ts'
import { completed, refused, stateOf, stopped, story, untilStatus } from './story.ts'

const server = inject('temporalServer')

describe.skipIf(!server)('cloudAgent', () => {
  let temporal: TemporalForTests
  beforeAll(async () => {
    temporal = await startTemporal(server!)
  })
  afterAll(() => temporal?.close())

  test('a child runs its turn, records in order, leaves one attempt and returns', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const agent = await startAgent(agentInput({ ensembleId: 'en-1', hasCheck: true }))
      expect(await agent.result()).toEqual({ bcId: agent.bcId, status: 'IDLE', reason: 'completed' })
      expect(story(stubs, agent.bcId)).toEqual([
        'session_start',
        'message turn-1',
        'RUNNING 0',
        'RUNNING 0',
        'ended turn-1 completed',
        'IDLE 0',
      ])
      expect(stubs.calls.map((call) => call.name).filter((name) => name !== 'recordState')).toEqual([
        'admit',
        'provisionSandbox',
        'runTurn',
        'checkpointTurn',
        'checkAttempt',
        'recordAttempt',
        'releaseSandbox',
      ])
      const before = stubs.calls.slice(
        0,
        stubs.calls.findIndex((call) => call.name === 'runTurn'),
      )
      const written = before
        .filter((call) => call.name === 'recordState')
        .flatMap((call) => (call.input as { events: { type: string }[] }).events)
      expect(written.map((event) => event.type)).toContain('user_message')
    }))

  test('the details say that a turn waits for an answer, and no longer when it does not', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
      const call = await next()
      const details = async () => {
        const metadata = await agent.handle.query<{ currentDetails: string }>('__temporal_workflow_metadata')
        return metadata.currentDetails
      }
      const tell = (turnId: string, waits: boolean) =>
        agent.handle.signal(turnWaitingSignal, { turnId, waits } satisfies TurnWaiting)
      expect(await details()).toContain('turn: 1, at work')
      await tell('turn-1', true)
      expect(await details()).toContain('turn: 1, waits for an answer')
      await tell('turn-1', false)
      expect(await details()).toContain('turn: 1, at work')
      await tell('another', true)
      expect(await details()).toContain('turn: 1, at work')
      call.finish(completed)
      await agent.result()
    }))

  test('API-09: follow-ups of two callers run in the order of their answers; an interrupt goes first', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
      const first = await next()
      const answers = await Promise.all([
        agent.send({ type: 'follow_up', turn: newTurn('f1') }),
        agent.send({ type: 'follow_up', turn: newTurn('f2') }),
      ])
      const byPosition = answers.toSorted((left, right) => left.position - right.position)
      expect(
        byPosition.map(({ position, state, endingTurnId }) => ({ position, state, endingTurnId })),
      ).toEqual([
        { position: 1, state: 'RUNNING', endingTurnId: '' },
        { position: 2, state: 'RUNNING', endingTurnId: '' },
      ])
      const interrupt = await agent.send({ type: 'interrupt', turn: newTurn('f3') })
      expect(interrupt).toMatchObject({ position: 1, endingTurnId: 'turn-1' })
      expect(first.input.turn.turnId).toBe('turn-1')
      const order = ['f3', ...byPosition.map((answer) => answer.turnId)]
      for (const turnId of order) {
        const call = await next()
        expect(call.input.turn.turnId).toBe(turnId)
        call.finish(completed)
      }
      await agent.result()
      const said = story(stubs, agent.bcId)
      expect(said.filter((line) => line.startsWith('message'))).toEqual(
        ['turn-1', ...byPosition.map((answer) => answer.turnId), 'f3'].map((id) => `message ${id}`),
      )
      expect(said.filter((line) => line.startsWith('ended'))).toEqual([
        'ended turn-1 interrupted',
        ...order.map((id) => `ended ${id} completed`),
      ])
    }))

  test('a turn whose cancel wins and one that returns a stale word both end as the state says', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput())
      await next()
      // The activity knows only that it was cancelled: it says stopped, the state says paused.
      stubs.on('runTurn', async () => stopped)
      expect(await agent.send({ type: 'pause' })).toMatchObject({ state: 'RUNNING', endingTurnId: 'turn-1' })
      await vi.waitFor(async () =>
        expect(await stateOf(agent)).toMatchObject({ status: 'IDLE', paused: true }),
      )
      expect((await stateOf(agent)).queue.map((turn) => [turn.turnId, turn.begun])).toEqual([
        ['turn-1', true],
      ])
      const again = stubs.hold('runTurn')
      expect(await agent.send({ type: 'resume' })).toMatchObject({ state: 'RUNNING' })
      const resumed = await again()
      expect(resumed.input).toMatchObject({ number: 1, continued: true, turn: { turnId: 'turn-1' } })
      const paused = agent.send({ type: 'pause' })
      await paused
      await vi.waitFor(async () =>
        expect(await stateOf(agent)).toMatchObject({ status: 'IDLE', paused: true }),
      )
      stubs.on('runTurn', async () => completed)
      await agent.send({ type: 'resume' })
      await untilStatus(agent, 'IDLE')
      await agent.send({ type: 'archive' })
      expect(await agent.result()).toMatchObject({ status: 'ARCHIVED' })
      const said = story(stubs, agent.bcId)
      expect(said.filter((line) => line === 'message turn-1')).toHaveLength(1)
      expect(said.filter((line) => line.startsWith('ended'))).toEqual([
        'ended turn-1 paused',
        'ended turn-1 paused',
        'ended turn-1 completed',
      ])
    }))

  test('a running turn that answers "stopped" to a pause goes on at resume', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const begun = Promise.withResolvers<void>()
      const paused = Promise.withResolvers<void>()
      stubs.on('runTurn', async (_input, call) => {
        if (call > 1) return completed
        begun.resolve()
        await paused.promise
        return stopped
      })
      const agent = await startAgent(agentInput())
      await begun.promise
      await agent.send({ type: 'pause' })
      paused.resolve()
      await vi.waitFor(async () =>
        expect(await stateOf(agent)).toMatchObject({ status: 'IDLE', paused: true }),
      )
      expect(stubs.callsOf('checkpointTurn')).toBe(1)
      expect((await stateOf(agent)).queue.map((turn) => turn.turnId)).toEqual(['turn-1'])
      await agent.send({ type: 'resume' })
      await vi.waitFor(async () =>
        expect(await stateOf(agent)).toMatchObject({ status: 'IDLE', paused: false }),
      )
      await agent.send({ type: 'expire' })
      expect(await agent.result()).toMatchObject({ status: 'EXPIRED' })
      expect(story(stubs, agent.bcId).slice(-2)).toEqual(['session_close', 'EXPIRED 0'])
    }))

  test('a turn that completes although it was told to stop stays completed; waiting turns go on', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const begun = Promise.withResolvers<void>()
      const told = Promise.withResolvers<void>()
      stubs.on('runTurn', async ({ turn }) => {
        if (turn.turnId !== 'turn-1') return completed
        begun.resolve()
        await told.promise
        return completed
      })
      const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
      await begun.promise
      await agent.send({ type: 'follow_up', turn: newTurn('f1') })
      await agent.send({ type: 'stop', all: false })
      told.resolve()
      expect(await agent.result()).toMatchObject({ status: 'IDLE', reason: 'completed' })
      expect(story(stubs, agent.bcId).filter((line) => line.startsWith('ended'))).toEqual([
        'ended turn-1 completed',
        'ended f1 completed',
      ])
    }))

  test.for(['admit', 'provisionSandbox'] as const)(
    'a stop while %s waits ends the turn and gives the slot back',
    (name) =>
      temporal.run(async ({ stubs, startAgent }) => {
        const next = stubs.hold(name)
        const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
        await next()
        await agent.send({ type: 'stop', all: true })
        expect(await agent.result()).toEqual({ bcId: agent.bcId, status: 'IDLE', reason: 'stopped_by_user' })
        expect(stubs.callsOf('runTurn')).toBe(0)
        expect(stubs.callsOf('checkpointTurn')).toBe(0)
        expect(stubs.callsOf('recordAttempt')).toBe(1)
        // An admission that was cancelled gives its own place back.
        expect(stubs.callsOf('releaseSandbox')).toBe(name === 'admit' ? 0 : 1)
        expect(story(stubs, agent.bcId)).toContain('ended turn-1 stopped_by_user')
      }),
  )

  test('a cancel from outside before there is a sandbox ends the run by its own rules', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      stubs.hold('admit')
      const agent = await startAgent(agentInput())
      await agent.handle.cancel()
      expect(await agent.result()).toEqual({ bcId: agent.bcId, status: 'IDLE', reason: 'stopped_by_user' })
      expect(story(stubs, agent.bcId)).toContain('ended turn-1 stopped_by_user')
      expect(stubs.callsOf('runTurn')).toBe(0)
    }))

  test('a cancel from outside stops the turn and every waiting one, checkpoints and releases', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput())
      await next()
      await agent.send({ type: 'follow_up', turn: newTurn('f1') })
      await agent.handle.cancel()
      expect(await agent.result()).toMatchObject({ status: 'IDLE', reason: 'stopped_by_user' })
      expect(stubs.callsOf('releaseSandbox')).toBe(1)
      expect(stubs.callsOf('runTurn')).toBe(1)
      await expect(agent.handle.describe()).resolves.toMatchObject({ status: { name: 'COMPLETED' } })
    }))

  test('API-12: refusals name the state and the way out, and leave no event; a repeated request gets its first answer', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const next = stubs.hold('runTurn')
      const agent = await startAgent(agentInput())
      const turn = await next()
      expect(await refused(agent.send({ type: 'deliver' }))).toBe(
        'refused: The agent is RUNNING. Wait until the turn has ended, or stop it.',
      )
      const requestId = randomUUID()
      const once = await agent.send({ type: 'follow_up', turn: newTurn('f1') }, requestId)
      const twice = await agent.send({ type: 'follow_up', turn: newTurn('other') }, requestId)
      expect(twice).toEqual(once)
      const archive = agent.send({ type: 'archive' })
      expect(await archive).toMatchObject({ state: 'ARCHIVED', endingTurnId: 'turn-1' })
      // Still the first answer, although the table would refuse the command now.
      expect(await agent.send({ type: 'follow_up', turn: newTurn('f1') }, requestId)).toEqual(once)
      expect(turn.input.turn.turnId).toBe('turn-1')
      expect(await agent.result()).toMatchObject({ status: 'ARCHIVED', reason: 'archived' })
      expect((stubs.recorded(agent.bcId)!.state as AgentState).queue.map((queued) => queued.turnId)).toEqual([
        'f1',
      ])
      expect(story(stubs, agent.bcId).filter((line) => line.startsWith('message'))).toEqual([
        'message turn-1',
        'message f1',
      ])
    }))
})
