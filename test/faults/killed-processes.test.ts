import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { nothingLeft } from '../cases/nothing-left.ts'
import { startEnsemble, type EnsembleDriver } from './ensemble-driver.ts'
import { expectWholeLogs, of } from './whole-logs.ts'

const temporalPath = inject('temporalServer')

/** The middle of each child: a call that is cut off by the kill and made again afterwards. */
const child = (name: string) => [
  `run: echo one >> ${name}`,
  `run: sleep 3; echo two >> ${name}`,
  `run: echo three >> ${name}`,
]

describe.skipIf(!temporalPath)('processes killed in the middle of an ensemble', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository

  beforeEach(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_MAX_SANDBOXES: '3', TUTTI_HEARTBEAT_TIMEOUT: '2s' },
    })
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterEach(async () => {
    await stack.remove()
    repository.remove()
  })

  /** Three children, each of them in its second call. */
  const inTheMiddle = async (): Promise<EnsembleDriver> => {
    const ensemble = await startEnsemble(stack, {
      repository: repository.path,
      agents: [child('a'), child('b'), child('c')],
      spec: { checkCommand: 'test -s a && test -s b && test -s c || test $(ls | wc -l) = 2' },
    })
    for (const bcId of await ensemble.bcIds()) {
      let calls = 0
      await ensemble.waitFor(bcId, (event) => event.type === 'tool_call_started' && (calls += 1) === 2)
    }
    return ensemble
  }

  /** Everything of every child, once; and one branch with one pull request. */
  const expectDelivered = async (ensemble: EnsembleDriver) => {
    const { reason, pullRequest, synthesis } = await ensemble.end()
    expect(reason).toBe('completed')
    const whole = '100644 one\ntwo\nthree\n'
    expect(repository.tree(synthesis!.commit)).toEqual({
      'README.md': '100644 hello\n',
      a: whole,
      b: whole,
      c: whole,
    })
    expect(pullRequest).toMatchObject({ number: 1n })
    expect(repository.git('branch', '--list', 'tutti/*').trim()).toBe(pullRequest!.branch)
    await expectWholeLogs(ensemble)
    await nothingLeft(stack)
  }

  const interruptions = async (ensemble: EnsembleDriver) => {
    const logs = await Promise.all((await ensemble.bcIds()).map((bcId) => ensemble.eventsOf(bcId)))
    return logs.map((events) => of(events, 'turn_interrupted').length)
  }

  test('the worker', async () => {
    await stack.serve('api')
    const worker = await stack.serve('worker')
    const ensemble = await inTheMiddle()
    await worker.kill()
    expect(stack.sandboxProcesses()).toEqual([])
    await stack.serve('worker')
    await expectDelivered(ensemble)
    expect(await interruptions(ensemble)).toEqual([1, 1, 1])
  })

  test('the api: clients go on from their offset at the next one', async () => {
    const api = await stack.serve('api')
    await stack.serve('worker')
    const ensemble = await inTheMiddle()
    const followed = ensemble.updates()
    await api.kill()
    await stack.serve('api')
    await expectDelivered(ensemble)
    expect(await interruptions(ensemble)).toEqual([0, 0, 0])
    const phases = (await followed).map(({ phase }) => phase)
    expect(phases).toEqual(phases.toSorted((left, right) => left - right))
  })

  test('the Temporal server: it is started again on its database', async () => {
    await stack.start()
    const ensemble = await inTheMiddle()
    const pid = stack.temporalPid()!
    process.kill(pid, 'SIGKILL')
    await expectDelivered(ensemble)
    expect(stack.temporalPid()).not.toBe(pid)
  })

  test('everything at once', async () => {
    await stack.start()
    const ensemble = await inTheMiddle()
    await stack.killEverything()
    expect(stack.sandboxProcesses()).toEqual([])
    await stack.start()
    await expectDelivered(ensemble)
    expect(await interruptions(ensemble)).toEqual([1, 1, 1])
  })
})
