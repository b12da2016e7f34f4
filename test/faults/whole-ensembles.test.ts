import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { connect } from '../cases/connect.ts'
import { nothingLeft } from '../cases/nothing-left.ts'
import { driveEnsemble, requestOf, startEnsemble } from './ensemble-driver.ts'
import { expectWholeLogs, of } from './whole-logs.ts'
import type { AgentId, EnsembleId } from '@tutti/core'

const temporalPath = inject('temporalServer')
const phases = ['STARTING', 'CHILDREN_RUNNING', 'GATHERING', 'SYNTHESIZING', 'COMPLETED']

describe.skipIf(!temporalPath)('whole ensembles under faults', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository

  const make = async (env: Readonly<Record<string, string>>) => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_HEARTBEAT_TIMEOUT: '2s', ...env },
    })
  }
  beforeEach(() => {
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterEach(async () => {
    await stack.remove()
    repository.remove()
  })

  test('ENS-04 a stop reaches children in every state and leaves nothing; the second stop has the same answer', async () => {
    await make({ TUTTI_MAX_SANDBOXES: '5' })
    await stack.start()
    const { ensembles } = connect(stack)
    const ensemble = await startEnsemble(stack, {
      repository: repository.path,
      agents: [
        ['run: (trap "" TERM; sleep 611) & echo deep; sleep 612'],
        ['run: echo deep; sleep 613'],
        ['ask: which one?'],
        ['ask: and here?'],
        ['write: done.txt finished'],
        ['say: never admitted before the others end'],
      ],
    })
    const bcIds = await ensemble.bcIds()
    const [first, second, third, fourth, fifth] = bcIds as [
      AgentId,
      AgentId,
      AgentId,
      AgentId,
      AgentId,
      AgentId,
    ]
    for (const id of [first, second])
      await ensemble.waitFor(id, (event) => event.type === 'shell_output_delta')
    for (const id of [third, fourth]) await ensemble.waitFor(id, (event) => event.type === 'agent_question')
    await ensemble.waitFor(fifth, (event) => event.type === 'turn_ended')

    const stoppedAt = Date.now()
    const answer = await ensembles.stopEnsemble({ ensembleId: ensemble.ensembleId })
    const again = await ensembles.stopEnsemble({ ensembleId: ensemble.ensembleId })
    const end = await ensemble.end()
    expect(Date.now() - stoppedAt).toBeLessThan(10_000)
    expect(again.reason).toBe(answer.reason)
    expect(end.reason).toBe('stopped_by_user')
    expect(end.pullRequest).toBeUndefined()
    await nothingLeft(stack)
    expect(end.attempts.find(({ bcId }) => bcId === fifth)).toMatchObject({
      reason: 'completed',
      filesChanged: 1,
    })
    const { stdout } = await stack.run(['agent', 'diff', fifth])
    expect(stdout).toContain('+finished')
    for (const id of [first, second, third, fourth]) {
      const events = await ensemble.eventsOf(id)
      expect(of(events, 'turn_ended')).toMatchObject([{ reason: 'stopped_by_user' }])
      const ended = events.findIndex((event) => event.type === 'turn_ended')
      const after = events.slice(ended + 1).map((event) => event.type)
      expect(after.filter((type) => !['status', 'sandbox', 'state_saved'].includes(type))).toEqual([])
    }
  })

  test('ENS-09 fifty children on eight slots, a third of them killed once: all end once, never more than eight sandboxes', async () => {
    await make({ TUTTI_MAX_SANDBOXES: '8' })
    await stack.start()
    const ensemble = await startEnsemble(stack, {
      repository: repository.path,
      agents: Array.from(
        { length: 50 },
        (_, index) => `command:sh -c 'sleep 0.5; echo ${index} > file-${index}'`,
      ),
      spec: { strategy: 'merge' },
    })
    const bcIds = await ensemble.bcIds()
    const watch = watchSandboxes(stack)
    const victims = bcIds.filter((_, index) => index % 3 === 0)
    const killing = Promise.all(
      victims.map(async (bcId) => {
        await ensemble.waitFor(bcId, (event) => event.type === 'tool_call_started')
        return watch.kill(bcId)
      }),
    )
    const end = await ensemble.end()
    const killed = (await killing).filter(Boolean).length
    watch.stop()
    expect(killed).toBeGreaterThan(3)
    expect(watch.most()).toBeLessThanOrEqual(8)
    expect(end.attempts).toHaveLength(50)
    expect(end.reason).toBe('completed')
    expect(end.attempts.map(({ reason }) => reason)).toEqual(Array.from({ length: 50 }, () => 'completed'))
    expect(Object.keys(repository.tree(end.synthesis!.commit))).toHaveLength(51)
    const children = of(await ensemble.events(), 'child').map(({ child }) => child)
    expect(children.some(({ queuePosition }) => queuePosition !== undefined && queuePosition > 10)).toBe(true)
    const ends = children.filter(({ status, commit }) => status === 'IDLE' && commit)
    expect(ends.map(({ bcId }) => bcId).toSorted()).toEqual(bcIds.toSorted())
    await nothingLeft(stack)
  })

  test('ENS-10 a start that is requested many times, over dying servers, is one ensemble', async () => {
    await make({ TUTTI_MAX_SANDBOXES: '4' })
    // The API dies after it began the start and before it answered.
    await stack.start({ TUTTI_CRASH_AT: 'ensemble.start:after:1' })
    const request = await requestOf(connect(stack), {
      repository: repository.path,
      agents: [1, 2, 3, 4].map((index) => `command:sh -c 'echo ${index} > file-${index}'`),
      idempotencyKey: 'ens-10',
    })
    const start = () => connect(stack).composers.startParallelAgentWorkflow(request)
    const lost = await Promise.allSettled(Array.from({ length: 10 }, start))
    expect(await stack.ended()).toBeNull()
    expect(lost.some(({ status }) => status === 'rejected')).toBe(true)
    // The worker dies once while gathering and once while synthesizing.
    await stack.start({ TUTTI_CRASH_AT: 'ensemble.gather:after:1' })
    const answers = await Promise.all(Array.from({ length: 10 }, start))
    const ids = new Set(answers.map(({ ensembleId, bcIds }) => [ensembleId, ...bcIds].join()))
    expect(ids.size).toBe(1)
    expect(await stack.ended()).toBeNull()
    const diesSynthesizing = await stack
      .start({ TUTTI_CRASH_AT: 'ensemble.combine:before:1' })
      .catch(() => undefined)
    if (diesSynthesizing) expect(await stack.ended()).toBeNull()
    await stack.start()
    const ensemble = driveEnsemble(stack, answers[0]!.ensembleId as EnsembleId)
    const end = await ensemble.end()
    expect(end.reason).toBe('completed')
    expect(of(await ensemble.events(), 'phase').map(({ phase }) => phase)).toEqual(phases)
    expect((await connect(stack).ensembles.listEnsembles({})).ensembles).toHaveLength(1)
    expect((await connect(stack).agents.listAgents({ pageSize: 100 })).agents).toHaveLength(4)
    expect(Object.keys(repository.tree(end.synthesis!.commit))).toHaveLength(5)
    await expectWholeLogs(ensemble)
  })

  test('Ctrl-C of run stops and checkpoints, a second one kills; either way nothing is left', async () => {
    await make({ TUTTI_MAX_SANDBOXES: '2' })
    const agent = `command:sh -c 'echo kept > kept.txt; (trap "" TERM; sleep 614) & echo up; sleep 615'`
    const args = ['run', 'wait', '--repo', repository.path, '--agents', '2', '--agent', agent]
    const once = stack.cli(args)
    await vi.waitFor(
      () => expect(stack.sandboxProcesses().filter((line) => line.includes('sleep 615'))).toHaveLength(2),
      60_000,
    )
    once.process.kill('SIGINT')
    const stopped = await once.done
    expect(stopped.code).toBe(2)
    expect(stopped.stdout).toContain('stopped_by_user')
    await nothingLeft(stack)

    const twice = stack.cli(args)
    await vi.waitFor(
      () => expect(stack.sandboxProcesses().filter((line) => line.includes('sleep 615'))).toHaveLength(2),
      60_000,
    )
    twice.process.kill('SIGINT')
    twice.process.kill('SIGINT')
    expect((await twice.done).code).toBe(130)
    await vi.waitFor(() => expect(stack.sandboxProcesses()).toEqual([]), 5000)
  })
})

/** Counts the living sandboxes all the time, and kills one agent's. */
function watchSandboxes(stack: TuttiStack) {
  let most = 0
  const mains = () => stack.sandboxProcesses().filter((line) => line.includes('agent-server.mjs'))
  const timer = setInterval(() => {
    most = Math.max(most, mains().filter((line) => line.includes('bwrap')).length)
  }, 100)
  return {
    most: () => most,
    stop: () => clearInterval(timer),
    /** SIGKILL of the sandbox's outermost process; false when it has just ended by itself. */
    kill(_bcId: AgentId): boolean {
      const victim = mains().find((line) => line.includes('bwrap'))
      if (!victim) return false
      try {
        process.kill(Number(victim.split(' ')[0]), 'SIGKILL')
        return true
      } catch {
        return false
      }
    },
  }
}
