import { randomUUID } from 'node:crypto'
import { WithStartWorkflowOperation, WorkflowUpdateFailedError } from '@temporalio/client'
import { ApplicationFailure, type Workflow } from '@temporalio/common'
import type { TurnResult } from '@tutti/activities'
import { agentWorkflowId, limits, type AgentState } from '@tutti/core'
import { agentStateQuery, releaseSandboxSignal, workflowTypes } from '@tutti/workflows'
import type { CommandAnswer, CommandRequest } from '@tutti/workflows'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { agentInput, newTurn, startTemporal, type Agent, type TemporalForTests } from './world.ts'
import type { StubActivities } from './stub-activities.ts'

const server = inject('temporalServer')

/** Types of an agent's events, a turn's id or a status behind them, in log order. */
function story(stubs: StubActivities, bcId: string): string[] {
  return stubs.events(bcId).map((event) => {
    if (event.type === 'user_message') return `message ${event.turn.turnId}`
    if (event.type === 'turn_ended') return `ended ${event.turnId} ${event.reason}`
    if (event.type === 'turn_interrupted') return `interrupted ${event.turnId} ${event.restart}`
    if (event.type === 'status') return `${event.status}${event.paused ? '+paused' : ''} ${event.queued}`
    return event.type
  })
}

const refused = (sent: Promise<unknown>) =>
  sent.then(
    () => 'accepted',
    (error: unknown) => {
      if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure)
        return `${error.cause.type}: ${error.cause.message}`
      throw error
    },
  )

const completed: TurnResult = { reason: 'completed', failed: false }
const stopped: TurnResult = { reason: 'stopped_by_user', failed: false }

const sandboxLost = (...details: string[]) =>
  ApplicationFailure.create({ type: 'sandbox_lost', message: 'gone', nonRetryable: true, details })

async function stateOf(agent: Agent): Promise<AgentState> {
  const { state } = await agent.handle.query<{ state: AgentState }>(agentStateQuery)
  return state
}

const untilStatus = (agent: Agent, status: string) =>
  vi.waitFor(async () => expect((await stateOf(agent)).status).toBe(status), { timeout: 10_000 })

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

  test('a lost sandbox is replaced: new incarnation, turn_interrupted, the message once', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      stubs.on('runTurn', async (_input, call) => {
        if (call === 1) throw sandboxLost()
        return completed
      })
      const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
      expect(await agent.result()).toMatchObject({ status: 'IDLE', reason: 'completed' })
      const turns = stubs.calls.filter((call) => call.name === 'runTurn').map((call) => call.input)
      expect(turns).toMatchObject([
        { incarnation: 1, continued: false, number: 1 },
        { incarnation: 2, continued: true, number: 1 },
      ])
      const said = story(stubs, agent.bcId)
      expect(said.filter((line) => line.startsWith('interrupted'))).toEqual(['interrupted turn-1 1'])
      expect(said.filter((line) => line === 'message turn-1')).toHaveLength(1)
      expect(stubs.callsOf('releaseSandbox')).toBe(2)
    }))

  test('a check that takes the sandbox with it undoes no finished turn', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      stubs.on('checkAttempt', async () => {
        throw sandboxLost()
      })
      const agent = await startAgent(agentInput({ ensembleId: 'en-1', hasCheck: true }))
      expect(await agent.result()).toMatchObject({ status: 'IDLE', reason: 'completed' })
      expect([stubs.callsOf('runTurn'), stubs.callsOf('releaseSandbox')]).toEqual([1, 1])
    }))

  test('after three restarts the agent is in ERROR sandbox_lost; handovers in good order are not counted', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      stubs.on('runTurn', async (_input, call) => {
        throw call <= 2 ? sandboxLost('planned') : sandboxLost()
      })
      const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
      expect(await agent.result()).toEqual({ bcId: agent.bcId, status: 'ERROR', reason: 'sandbox_lost' })
      expect(stubs.callsOf('runTurn')).toBe(2 + limits.maxRestarts + 1)
      expect(stubs.calls.findLast((call) => call.name === 'recordAttempt')?.input).toMatchObject({
        status: 'ERROR',
        reason: 'sandbox_lost',
        detail: 'gone',
      })
    }))

  test('a stop that arrives while the last allowed sandbox is lost is a stop, not a failure', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const begun = Promise.withResolvers<void>()
      const told = Promise.withResolvers<void>()
      stubs.on('runTurn', async (_input, call) => {
        if (call > limits.maxRestarts) {
          begun.resolve()
          await told.promise
        }
        throw sandboxLost()
      })
      const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
      await begun.promise
      await agent.send({ type: 'stop', all: false })
      told.resolve()
      expect(await agent.result()).toMatchObject({ status: 'IDLE', reason: 'stopped_by_user' })
    }))

  test.for(['setup_failed', 'boot_timeout'] as const)(
    '%s is an ERROR with its words, and a follow-up tries again',
    (reason) =>
      temporal.run(async ({ stubs, startAgent, agent: find, env, taskQueue }) => {
        stubs.on('provisionSandbox', async (_input, call) => {
          if (call === 1)
            throw ApplicationFailure.create({ type: reason, message: 'exit code 7', nonRetryable: true })
        })
        const input = agentInput()
        const agent = await startAgent(input)
        expect(await agent.result()).toMatchObject({ status: 'ERROR', reason })
        expect(stubs.callsOf('releaseSandbox')).toBe(1)
        const ended = stubs.events(agent.bcId).find((event) => event.type === 'turn_ended')
        expect(ended).toMatchObject({ reason, detail: 'exit code 7' })

        // The run has returned; the next command starts a new one from what was stored.
        const stored = stubs.recorded(agent.bcId)!
        const { firstTurn: _, ...rest } = input
        const startWorkflowOperation = new WithStartWorkflowOperation(workflowTypes.agent, {
          workflowId: agentWorkflowId(agent.bcId),
          taskQueue,
          workflowIdConflictPolicy: 'USE_EXISTING',
          args: [
            {
              ...rest,
              state: stored.state,
              incarnation: stored.incarnation,
              turns: stored.turns,
              hadSandbox: stored.hadSandbox,
            },
          ],
        })
        const reopen = () =>
          env.client.workflow.executeUpdateWithStart<Workflow, CommandAnswer, [CommandRequest]>('follow_up', {
            args: [{ requestId: 'again', command: { type: 'follow_up', turn: newTurn('f1') } }],
            startWorkflowOperation,
          })
        expect(await reopen()).toMatchObject({ state: 'RUNNING', position: 0 })
        const reopened = find(agent.bcId)
        await untilStatus(reopened, 'IDLE')
        expect(stubs.calls.findLast((call) => call.name === 'runTurn')?.input).toMatchObject({
          number: 2,
          incarnation: 2,
        })
        expect(story(stubs, agent.bcId).filter((line) => line === 'session_start')).toHaveLength(1)
        await reopened.send({ type: 'archive' })
        await reopened.result()
      }),
  )

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
