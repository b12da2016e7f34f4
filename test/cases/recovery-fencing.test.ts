import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { sandboxesOf, signalAll } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')
const heartbeatMs = 2000

describe.skipIf(!temporalPath)('a sandbox that is frozen and replaced', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository

  beforeEach(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_HEARTBEAT_TIMEOUT: `${heartbeatMs}ms`, TUTTI_CAPTURE_INTERVAL: '500ms' },
    })
    await stack.serve('api')
    client = connect(stack)
    repository = createTestRepository({ x: 'x' })
  })
  afterEach(async () => {
    await stack.remove()
    repository.remove()
  })

  /** An agent at rest, with its first turn delivered. */
  async function start(): Promise<{ agent: AgentDriver; branch: string }> {
    const agent = await startAgent(client, {
      prompt: script('write: first.txt 1'),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    expect((await agent.rest()).state?.reason).toBe('completed')
    const { branch } = await client.agents.deliverAgent({ bcId: agent.bcId })
    return { agent, branch }
  }
  const isChange = (path: string) => (event: { type: string; path?: string }) =>
    event.type === 'file_change' && event.path === path
  const running = () => stack.sandboxProcesses().join('\n')
  const treeWith = (files: Readonly<Record<string, string>>) => ({
    x: '100644 x',
    'first.txt': '100644 1\n',
    begun: '100644 ',
    ...files,
  })

  test('REC-18 the old sandbox wakes up with its host after it was replaced', async () => {
    const host = await stack.serve('worker')
    const { agent, branch } = await start()
    const delivered = repository.git('rev-parse', branch)
    await agent.followUp(
      script(
        'run: <<EOF',
        'if [ -e begun ]; then echo second > second.txt; sleep 964; exit; fi',
        'touch begun; trap go=1 USR1',
        'while [ -z "$go" ]; do sleep 0.05; done',
        // Not to be joined to one event.
        'for n in 1 2 3 4 5 6 7 8 9 10; do echo late; sleep 0.02; echo late >&2; sleep 0.02; done',
        'for n in 1 2 3 4 5; do echo late $n > late-$n; done',
        `git push ${repository.path} +HEAD:refs/heads/${branch}`,
        'sleep 963',
        'EOF',
      ),
    )
    await agent.waitFor(isChange('begun'))

    // The host stands still first: what its agent does now waits to be taken when it wakes up.
    process.kill(host.ready.pid, 'SIGSTOP')
    const shell = sandboxesOf(stack)
      .flat()
      .find((line) => line.includes('trap go=1 USR1'))
    process.kill(Number.parseInt(shell!, 10), 'SIGUSR1')
    await expect.poll(running, { timeout: 20_000 }).toMatch(/^\d+ sleep 963/m)
    const [old] = sandboxesOf(stack)
    signalAll(old!, 'SIGSTOP')
    const frozenAt = Date.now()

    await stack.serve('worker')
    await agent.waitFor(isChange('second.txt'))
    await expect
      .poll(() => Date.now() - frozenAt, { timeout: 10_000 })
      .toBeGreaterThanOrEqual(2 * heartbeatMs)
    expect(running()).toMatch(/^\d+ sleep 963/m)
    const before = await agent.events()
    signalAll(old!, 'SIGCONT')
    process.kill(host.ready.pid, 'SIGCONT')

    await expect.poll(() => sandboxesOf(stack), { timeout: 30_000 }).toHaveLength(1)
    expect(running()).not.toMatch(/^\d+ sleep 963/m)
    expect(running()).toMatch(/^\d+ sleep 964/m)
    const after = await agent.events()
    expect(after.slice(0, before.length)).toEqual(before)
    expect(after.slice(before.length).filter(({ type }) => type !== 'state_saved')).toEqual([])
    expect(shellOutput(after)).not.toContain('late')
    expect(repository.git('rev-parse', branch)).toBe(delivered)

    await client.agents.stopAgent({ bcId: agent.bcId })
    await agent.rest()
    await client.agents.deliverAgent({ bcId: agent.bcId })
    expect(repository.tree(branch)).toEqual(treeWith({ 'second.txt': '100644 second\n' }))
    const incarnations = (await agent.events()).flatMap((event) =>
      event.type === 'sandbox' && event.state === 'ready' ? [event.incarnation] : [],
    )
    expect(incarnations).toEqual([1, 2])
  })

  test('REC-18 a sandbox that is frozen alone is ended and replaced while its host lives', async () => {
    await stack.serve('worker', { TUTTI_SANDBOX_ANSWER_TIMEOUT: '3s' })
    const { agent, branch } = await start()
    await agent.followUp(
      script('run: if [ -e begun ]; then echo second > second.txt; exit; fi; touch begun; sleep 965'),
    )
    await agent.waitFor(isChange('begun'))
    const [old] = sandboxesOf(stack)
    signalAll(old!, 'SIGSTOP')
    expect((await agent.rest()).state?.reason).toBe('completed')

    const events = await agent.events()
    expect(events.filter(({ type }) => type === 'turn_interrupted')).toMatchObject([{ incarnation: 1 }])
    const left = stack.sandboxProcesses().map((line) => Number.parseInt(line, 10))
    expect(old!.filter((line) => left.includes(Number.parseInt(line, 10)))).toEqual([])
    expect(sandboxesOf(stack)).toHaveLength(1)
    await client.agents.deliverAgent({ bcId: agent.bcId })
    expect(repository.tree(branch)).toEqual(treeWith({ 'second.txt': '100644 second\n' }))
  })
})
