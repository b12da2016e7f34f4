import { WithStartWorkflowOperation } from '@temporalio/client'
import { ApplicationFailure, type Workflow } from '@temporalio/common'
import { agentWorkflowId, limits } from '@tutti/core'
import { workflowTypes } from '@tutti/workflows'
import type { CommandAnswer, CommandRequest } from '@tutti/workflows'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { agentInput, newTurn, startTemporal, type TemporalForTests } from './world.ts'
import { completed, sandboxLost, story, untilStatus } from './story.ts'

const server = inject('temporalServer')

describe.skipIf(!server)('cloudAgent: its sandbox is lost, or never comes', () => {
  let temporal: TemporalForTests
  beforeAll(async () => {
    temporal = await startTemporal(server!)
  })
  afterAll(() => temporal?.close())

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

  test('its session has begun in the log before its sandbox is made, however slow the log is', () =>
    temporal.run(async ({ stubs, startAgent }) => {
      const written = Promise.withResolvers<void>()
      stubs.on('recordState', () => written.promise)
      const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
      /** What the workflow asked for, once it has gone on with the slot. */
      const asked = async () => {
        const { events } = await agent.handle.fetchHistory()
        const slot = events!.findIndex((event) => event.activityTaskCompletedEventAttributes)
        if (slot < 0 || !events!.slice(slot).some((event) => event.workflowTaskCompletedEventAttributes))
          return []
        return events!.flatMap(
          ({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.activityType?.name ?? [],
        )
      }
      await expect.poll(async () => (await asked()).toSorted()).toEqual(['admit', 'recordState'])
      written.resolve()
      await agent.result()
      expect(stubs.callsOf('provisionSandbox')).toBe(1)
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
        if (call === 2) throw sandboxLost('planned', 'expires')
        throw call === 1 ? sandboxLost('planned') : sandboxLost()
      })
      const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
      expect(await agent.result()).toEqual({ bcId: agent.bcId, status: 'ERROR', reason: 'sandbox_lost' })
      expect(stubs.callsOf('runTurn')).toBe(2 + limits.maxRestarts + 1)
      const cuts = stubs.events(agent.bcId).filter((event) => event.type === 'turn_interrupted')
      expect(cuts.map(({ reason }) => reason)).toEqual([
        'handover',
        'expires',
        'lost',
        'lost',
        'lost',
        'lost',
      ])
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
})
