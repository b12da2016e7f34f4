import { ApplicationFailure } from '@temporalio/common'
import type { Activities, TurnResult } from '@tutti/activities'
import { agentWorkflowId, type AgentId } from '@tutti/core'
import { ensembleUpdates, type ParallelAgentsInput } from '@tutti/workflows'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { untilCancelled, type StubActivities } from './stub-activities.ts'
import { agentInput, ensembleInput, startTemporal, type TemporalForTests } from './world.ts'

const server = inject('temporalServer')

const phasesOf = (stubs: StubActivities, input: ParallelAgentsInput) =>
  stubs.phases(input.ensembleId).map(({ phase, reason }) => (reason ? `${phase} ${reason}` : phase))

const inputsOf = <N extends keyof Activities>(stubs: StubActivities, name: N) =>
  stubs.calls.filter((call) => call.name === name).map((call) => call.input as Parameters<Activities[N]>[0])

const completed: TurnResult = { reason: 'completed', failed: false }

const failure = (type: string) =>
  ApplicationFailure.create({ type, message: `it was ${type}`, nonRetryable: true })

const usual = ['STARTING', 'CHILDREN_RUNNING', 'GATHERING', 'SYNTHESIZING', 'COMPLETED completed']

describe.skipIf(!server)('parallelAgents', () => {
  let temporal: TemporalForTests
  beforeAll(async () => {
    temporal = await startTemporal(server!)
  })
  afterAll(() => temporal?.close())

  test('ENS-01: one failing child of five leaves its siblings alone; the result has the other four', () =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(5)
      const ids = input.children.map(({ bcId }) => bcId)
      stubs.on('runTurn', async ({ bcId }) => {
        if (bcId === ids[2]) throw failure('agent_error')
        return completed
      })
      const ensemble = await startEnsemble(input)
      expect(await ensemble.result()).toEqual({
        ensembleId: input.ensembleId,
        phase: 'COMPLETED',
        reason: 'completed',
      })
      expect(phasesOf(stubs, input)).toEqual(usual)
      const [gathered] = inputsOf(stubs, 'gather')
      expect(gathered?.children).toEqual(
        ids.map((bcId, index) => ({
          bcId,
          status: index === 2 ? 'ERROR' : 'IDLE',
          reason: index === 2 ? 'agent_error' : 'completed',
        })),
      )
      expect(stubs.callsOf('runTurn')).toBe(5)
      expect(stubs.callsOf('recordAttempt')).toBe(5)
      const others = ids.filter((_id, index) => index !== 2)
      expect(inputsOf(stubs, 'deliver')).toMatchObject([{ included: others, commit: 'combined-4' }])
      expect(stubs.phases(input.ensembleId).at(-1)?.result).toMatchObject({
        finalCommit: 'combined-4',
        included: others,
      })
    }))

  test('ENS-02: when all children fail nothing is synthesized or delivered', () =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(4)
      const reasons = ['agent_error', 'resource_limit', 'timeout', 'setup_failed']
      stubs.on('runTurn', async ({ bcId }) => {
        throw failure(reasons[input.children.findIndex((child) => child.bcId === bcId)]!)
      })
      const ensemble = await startEnsemble(input)
      expect(await ensemble.result()).toMatchObject({ phase: 'ERROR', reason: 'all_children_failed' })
      expect(phasesOf(stubs, input)).toEqual([
        'STARTING',
        'CHILDREN_RUNNING',
        'GATHERING',
        'ERROR all_children_failed',
      ])
      expect(inputsOf(stubs, 'gather')[0]?.children.map((child) => child.reason)).toEqual(reasons)
      expect([stubs.callsOf('combine'), stubs.callsOf('deliver')]).toEqual([0, 0])
      expect(stubs.callsOf('releaseSandbox')).toBe(4)
    }))

  test('ENS-07: children that change nothing are no candidates; when none changed anything that is the result', () =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(3)
      stubs.on('checkpointTurn', async () => ({ commit: 'base', filesChanged: 0 }))
      const ensemble = await startEnsemble(input)
      expect(await ensemble.result()).toMatchObject({ phase: 'COMPLETED', reason: 'nothing_to_deliver' })
      expect(phasesOf(stubs, input)).toEqual([
        'STARTING',
        'CHILDREN_RUNNING',
        'GATHERING',
        'COMPLETED nothing_to_deliver',
      ])
      expect([stubs.callsOf('combine'), stubs.callsOf('deliver')]).toEqual([0, 0])
    }))

  const [a, b, c, d] = ['bc-a', 'bc-b', 'bc-c', 'bc-d'] as const satisfies AgentId[]

  test.for([
    {
      name: 'the first alternative fails its check and the second is taken',
      alternatives: [[a, b], [a]],
      additions: [],
      passes: (included: string) => included === 'bc-a',
      combined: ['bc-a,bc-b', 'bc-a'],
      delivered: ['bc-a'],
    },
    {
      name: 'an addition that passes is kept and one that breaks the check is dropped',
      alternatives: [[a]],
      additions: [b, c, d],
      passes: (included: string) => !included.includes('bc-c'),
      combined: ['bc-a', 'bc-a,bc-b', 'bc-a,bc-b,bc-c', 'bc-a,bc-b,bc-d'],
      delivered: ['bc-a,bc-b,bc-d'],
    },
    {
      name: 'when no alternative passes nothing is delivered',
      alternatives: [[a, b], [a]],
      additions: [c],
      passes: () => false,
      combined: ['bc-a,bc-b', 'bc-a'],
      delivered: [],
    },
  ])('$name', ({ alternatives, additions, passes, combined, delivered }) =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(2, { hasCheck: true })
      stubs.on('gather', async () => ({ candidates: 2, unchanged: 0, alternatives, additions }))
      stubs.on('combine', async ({ attempts }) => ({
        commit: attempts.join(','),
        conflicts: 0,
        reportBlobId: `sha256_${'0'.repeat(64)}`,
      }))
      stubs.on('verify', async ({ commit }) => ({ exitCode: passes(commit) ? 0 : 1 }))
      const ensemble = await startEnsemble(input)
      expect(await ensemble.result()).toMatchObject(
        delivered.length > 0
          ? { phase: 'COMPLETED', reason: 'completed' }
          : { phase: 'ERROR', reason: 'check_failed' },
      )
      expect(inputsOf(stubs, 'combine').map(({ attempts }) => attempts.join(','))).toEqual(combined)
      expect(inputsOf(stubs, 'deliver').map(({ commit }) => commit)).toEqual(delivered)
    }),
  )

  test('ENS-04: a stop reaches children in every state, is the same twice, and what has ended stays', () =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(4)
      const [finished, provisioning] = input.children.map(({ bcId }) => bcId)
      const begun = new Set<string>()
      stubs.on('provisionSandbox', async ({ bcId }) => {
        if (bcId !== provisioning) return
        begun.add(bcId)
        await untilCancelled()
      })
      stubs.on('runTurn', async ({ bcId }) => {
        if (bcId === finished) return completed
        begun.add(bcId)
        return untilCancelled()
      })
      const ensemble = await startEnsemble(input)
      await vi.waitFor(
        () =>
          expect([begun.size, stubs.callsOf('recordAttempt'), stubs.phases(input.ensembleId).length]).toEqual(
            [3, 1, 2],
          ),
        { timeout: 10_000 },
      )
      const stop = () =>
        ensemble.handle.executeUpdate<string, [{ requestId: string }]>(ensembleUpdates.stop, {
          args: [{ requestId: 'r' }],
        })
      expect(await Promise.all([stop(), stop()])).toEqual(['CHILDREN_RUNNING', 'CHILDREN_RUNNING'])
      expect(await ensemble.result()).toMatchObject({ phase: 'ERROR', reason: 'stopped_by_user' })
      expect(phasesOf(stubs, input)).toEqual([
        'STARTING',
        'CHILDREN_RUNNING',
        'GATHERING',
        'ERROR stopped_by_user',
      ])
      expect(
        inputsOf(stubs, 'gather')[0]?.children.map(({ status, reason }) => `${status} ${reason}`),
      ).toEqual(['IDLE completed', ...Array.from({ length: 3 }, () => 'IDLE stopped_by_user')])
      expect(stubs.callsOf('recordAttempt')).toBe(4)
      expect(stubs.callsOf('releaseSandbox')).toBe(4)
      expect([stubs.callsOf('combine'), stubs.callsOf('deliver')]).toEqual([0, 0])
    }))

  test('a cancel from outside is a stop', () =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(2)
      const next = stubs.hold('runTurn')
      const ensemble = await startEnsemble(input)
      await Promise.all([next(), next()])
      await ensemble.handle.cancel()
      expect(await ensemble.result()).toMatchObject({ phase: 'ERROR', reason: 'stopped_by_user' })
    }))

  test('a stop while the combined tree is checked delivers nothing', () =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(2, { hasCheck: true })
      const next = stubs.hold('verify')
      const ensemble = await startEnsemble(input)
      await next()
      await ensemble.handle.executeUpdate(ensembleUpdates.stop, { args: [{ requestId: 'r' }] })
      expect(await ensemble.result()).toMatchObject({ phase: 'ERROR', reason: 'stopped_by_user' })
      expect(phasesOf(stubs, input)).toEqual([...usual.slice(0, 4), 'ERROR stopped_by_user'])
      expect(stubs.callsOf('deliver')).toBe(0)
    }))

  test('the time limit of the ensemble stops its children and is the reason', () =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(2, { ensembleTimeoutMs: 1000 })
      stubs.hold('runTurn')
      const ensemble = await startEnsemble(input)
      expect(await ensemble.result()).toMatchObject({ phase: 'ERROR', reason: 'timeout' })
      expect(inputsOf(stubs, 'gather')[0]?.children.map(({ reason }) => reason)).toEqual([
        'stopped_by_user',
        'stopped_by_user',
      ])
    }))

  test('a child that an operator terminates, and one whose id is taken, are failures of their own', () =>
    temporal.run(async ({ stubs, startEnsemble, startAgent, agent }) => {
      const input = ensembleInput(3)
      const [terminated, taken] = input.children.map(({ bcId }) => bcId) as [AgentId, AgentId]
      const begun = Promise.withResolvers<void>()
      stubs.on('runTurn', async ({ bcId, turn }) => {
        if (bcId === terminated) begun.resolve()
        if (bcId === terminated || turn.turnId === 'turn-1') return untilCancelled()
        return completed
      })
      const holder = await startAgent(agentInput({ bcId: taken }))
      const ensemble = await startEnsemble(input)
      await begun.promise
      await agent(terminated).handle.terminate('by hand')
      expect(await ensemble.result()).toMatchObject({ phase: 'COMPLETED', reason: 'completed' })
      expect(
        inputsOf(stubs, 'gather')[0]?.children.map(({ status, reason }) => `${status} ${reason}`),
      ).toEqual(['ERROR internal', 'ERROR internal', 'IDLE completed'])
      await holder.handle.cancel()
      await holder.result()
    }))

  test.for([
    { outcome: 'failed', phase: 'ERROR', reason: 'delivery_failed' },
    { outcome: 'nothing_to_deliver', phase: 'COMPLETED', reason: 'nothing_to_deliver' },
  ] as const)('a delivery that ends as $outcome keeps the result', ({ outcome, phase, reason }) =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(1)
      stubs.on('deliver', async () => ({ outcome }))
      const ensemble = await startEnsemble(input)
      expect(await ensemble.result()).toMatchObject({ phase, reason })
      expect(stubs.phases(input.ensembleId).at(-1)?.result).toMatchObject({ finalCommit: 'combined-1' })
    }),
  )

  test('ENS-08: one child takes the same way', () =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(1)
      const ensemble = await startEnsemble(input)
      await ensemble.result()
      expect(phasesOf(stubs, input)).toEqual(usual)
    }))

  test('a failing step of the synthesis is the reason of the ensemble, with its words', () =>
    temporal.run(async ({ stubs, startEnsemble }) => {
      const input = ensembleInput(1)
      stubs.on('combine', async () => {
        throw failure('data_loss')
      })
      const ensemble = await startEnsemble(input)
      expect(await ensemble.result()).toMatchObject({ phase: 'ERROR', reason: 'data_loss' })
      expect(stubs.phases(input.ensembleId).at(-1)?.detail).toBe('it was data_loss')
    }))

  test(
    'ENS-09: fifty children start in batches; the parent stays under 2,000 events',
    { timeout: 120_000 },
    () =>
      temporal.run(async ({ stubs, startEnsemble, env }) => {
        const input = ensembleInput(50)
        const ensemble = await startEnsemble(input)
        expect(await ensemble.result()).toMatchObject({ phase: 'COMPLETED', reason: 'completed' })
        expect(inputsOf(stubs, 'gather')[0]?.children).toHaveLength(50)
        expect(stubs.callsOf('recordAttempt')).toBe(50)
        const events = (await ensemble.handle.fetchHistory()).events ?? []
        expect(events.length).toBeLessThan(2000)
        const perTask = new Map<string, number>()
        for (const event of events) {
          const task = event.startChildWorkflowExecutionInitiatedEventAttributes?.workflowTaskCompletedEventId
          if (task) perTask.set(String(task), (perTask.get(String(task)) ?? 0) + 1)
        }
        expect([...perTask.values()]).toEqual([10, 10, 10, 10, 10])
        const last = env.client.workflow.getHandle(agentWorkflowId(input.children[49]!.bcId))
        expect(await last.result()).toMatchObject({ status: 'IDLE' })
      }),
  )

  test('without a cache every step is a replay', () =>
    temporal.run(
      async ({ stubs, startEnsemble }) => {
        const input = ensembleInput(3, { hasCheck: true })
        const ensemble = await startEnsemble(input)
        expect(await ensemble.result()).toMatchObject({ phase: 'COMPLETED', reason: 'completed' })
        expect(phasesOf(stubs, input)).toEqual(usual)
      },
      { maxCachedWorkflows: 0 },
    ))
})
