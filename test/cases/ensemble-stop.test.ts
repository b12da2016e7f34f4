import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { startEnsemble } from '../faults/ensemble-driver.ts'
import { expectWholeLogs, of } from '../faults/whole-logs.ts'
import { startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { nothingLeft } from './nothing-left.ts'
import { killSandbox, sandboxesOf } from './sandboxes.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('the stop of an ensemble', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '6' } })
    await stack.start()
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  test('ENS-04 reaches children in every state, is the same answer twice, and keeps what has ended', async () => {
    const tool = (seconds: number) =>
      `command:sh -c 'trap "" TERM; echo w > w; echo started; sleep ${seconds} & wait; sleep ${seconds}'`
    const idle = ['write: idle.txt x', 'ask: which one? | a | b']
    const ensemble = await startEnsemble(stack, {
      repository: repository.path,
      agents: ["command:sh -c 'echo done > done.txt'", tool(611), tool(612), idle, idle, tool(613)],
    })
    const [finished, tool1, tool2, idle1, idle2, late] = await ensemble.bcIds()
    await ensemble.waitForOwn(
      (event) => event.type === 'child' && event.child.bcId === finished && event.child.status === 'IDLE',
    )
    for (const bcId of [tool1!, tool2!, late!])
      await ensemble.waitFor(bcId, (event) => event.type === 'shell_output_delta' && 'data' in event.event)
    for (const bcId of [idle1!, idle2!])
      await ensemble.waitFor(bcId, (event) => event.type === 'agent_question')
    // Two others: one takes the slot that is free, one waits, and gets the slot of the child whose sandbox dies.
    const client = connect(stack)
    const others = [601, 602].map((seconds) =>
      startAgent(client, { prompt: 'wait', repository: repository.path, agent: tool(seconds) }),
    )
    for (const other of await Promise.all(others))
      await other.waitFor((event) => event.type === 'sandbox' && ['ready', 'waiting'].includes(event.state))
    killSandbox(stack, 'sleep 613')
    await ensemble.waitForOwn(
      (event) => event.type === 'child' && event.child.bcId === late && event.child.queuePosition === 1,
    )

    const stoppedAt = Date.now()
    const { ensembles } = client
    const answers = [
      await ensembles.stopEnsemble({ ensembleId: ensemble.ensembleId }),
      await ensembles.stopEnsemble({ ensembleId: ensemble.ensembleId }),
    ]
    const { reason, attempts } = await ensemble.end()
    await vi.waitFor(() => expect(sandboxesOf(stack)).toHaveLength(2), { timeout: 10_000 })
    expect(Date.now() - stoppedAt).toBeLessThan(10_000)
    for (const other of await Promise.all(others))
      await client.composers.archiveBackgroundComposer({ bcId: other.bcId })
    await nothingLeft(stack)
    expect(reason).toBe('stopped_by_user')
    expect(answers[1]).toEqual(answers[0])

    expect(attempts.map((attempt) => attempt.reason)).toEqual([
      'completed',
      ...Array.from({ length: 5 }, () => 'stopped_by_user'),
    ])
    const diff = await stack.run(['agent', 'diff', finished!])
    expect(diff.stdout).toContain('+done')
    await expectWholeLogs(ensemble)
    // What the stopped ones had made so far is kept as well.
    expect(of(await ensemble.eventsOf(tool1!), 'checkpoint').at(-1)?.filesChanged).toBe(1)
    expect(repository.git('branch', '--list', 'tutti/*')).toBe('')
  })
})
