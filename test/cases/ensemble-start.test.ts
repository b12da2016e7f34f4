import type { EnsembleId } from '@tutti/core'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { driveEnsemble, requestOf } from '../faults/ensemble-driver.ts'
import { expectWholeLogs, of } from '../faults/whole-logs.ts'
import { connect } from './connect.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('the start of an ensemble', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository

  beforeEach(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_MAX_SANDBOXES: '4', TUTTI_HEARTBEAT_TIMEOUT: '2s' },
    })
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterEach(async () => {
    await stack.remove()
    repository.remove()
  })

  test('ENS-10 requested many times, over kills of the API and the worker, it is one ensemble', async () => {
    const api = await stack.serve('api', { TUTTI_CRASH_AT: 'ensemble.start:after' })
    const request = await requestOf(connect(stack), {
      repository: repository.path,
      agents: [1, 2, 3, 4].map((n) => `command:sh -c 'echo ${n} > f${n}'`),
      idempotencyKey: 'start-me-once',
    })
    const start = async () =>
      (await connect(stack).composers.startParallelAgentWorkflow(request)).ensembleId as EnsembleId
    const together = () => Promise.all(Array.from({ length: 10 }, start))
    await expect(together()).rejects.toMatchObject({ code: 'unavailable' })
    expect(await api.ended).toBeNull()

    await stack.serve('api')
    const [ensembleId, ...others] = await together()
    expect(others).toEqual(others.map(() => ensembleId))
    const gathering = await stack.serve('worker', { TUTTI_CRASH_AT: 'ensemble.gather:after' })
    expect(await gathering.ended).toBeNull()
    const synthesizing = await stack.serve('worker', { TUTTI_CRASH_AT: 'ensemble.combine:after' })
    expect(await synthesizing.ended).toBeNull()
    await stack.serve('worker')

    const ensemble = driveEnsemble(stack, ensembleId!)
    const phases = (await ensemble.updates()).map(({ phase }) => phase)
    expect(phases).toEqual(phases.toSorted((left, right) => left - right))
    const { reason, synthesis, attempts } = await ensemble.get()
    expect(reason).toBe('completed')
    expect(attempts).toHaveLength(4)
    expect(Object.keys(repository.tree(synthesis!.commit))).toEqual(['README.md', 'f1', 'f2', 'f3', 'f4'])
    const events = await ensemble.events()
    expect(of(events, 'phase')).toHaveLength(5)
    expect(of(events, 'combined')).toHaveLength(1)
    expect(of(events, 'combined')[0]!.included.toSorted()).toEqual(
      attempts.map(({ bcId }) => bcId).toSorted(),
    )
    await expectWholeLogs(ensemble)
    const { ensembles } = await connect(stack).ensembles.listEnsembles({})
    expect(ensembles).toHaveLength(1)
    const { composers } = await connect(stack).composers.listBackgroundComposers({ pageSize: 1000 })
    expect(composers).toHaveLength(4)
    expect(await start()).toBe(ensembleId)
  })
})
