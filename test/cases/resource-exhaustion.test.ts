import { readFileSync } from 'node:fs'
import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { nothingLeft } from './nothing-left.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

const pids = 48

describe.skipIf(!temporalPath)('SEC-07 exhaustion stays in one sandbox', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository

  beforeAll(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: {
        TUTTI_MAX_SANDBOXES: '4',
        TUTTI_SANDBOX_PIDS: String(pids),
        TUTTI_SANDBOX_MEMORY: '256MiB',
        TUTTI_SANDBOX_CPU: '60',
      },
    })
    await stack.start()
    // A real bomb is only let off where the kernel holds it.
    expect((await stack.run(['doctor'])).stdout).toMatch(/limits: (cgroup-v[12]|systemd-run)/)
    client = connect(stack)
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  const started: AgentDriver[] = []
  afterEach(async () => {
    for (const { bcId } of started.splice(0)) await client.composers.archiveBackgroundComposer({ bcId })
    await nothingLeft(stack, 10_000)
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  const start = async (...lines: readonly string[]) => {
    const prompt = script(...lines)
    const agent = await startAgent(client, {
      prompt,
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    started.push(agent)
    return agent
  }
  const saysSomething = (agent: AgentDriver) =>
    agent.waitFor((event) => event.type === 'shell_output_delta' && 'data' in event.event)
  /** A second agent that begins now works through its turn, whatever the first one does. */
  async function expectNeighbourWorks(): Promise<void> {
    const neighbour = await start(
      'run: for i in 1 2 3 4 5; do echo step $i; sleep 0.2; done',
      'write: done.txt 1',
    )
    expect((await neighbour.rest()).state?.reason).toBe('completed')
  }
  async function expectQuickStop(agent: AgentDriver): Promise<void> {
    const stoppedAt = Date.now()
    await client.agents.stopAgent({ bcId: agent.bcId })
    await agent.rest()
    expect(Date.now() - stoppedAt).toBeLessThan(10_000)
    // What was exhausted may have ended the turn just before the stop did.
    const { reason } = (await agent.get()).state!
    expect([await agent.state(), reason]).toEqual(
      reason === 'resource_limit' ? ['ERROR', reason] : ['IDLE', 'stopped_by_user'],
    )
    // It is still of use.
    await agent.followUp(script('run: echo still here'))
    expect((await agent.rest()).state?.reason).toBe('completed')
  }
  const turnEnds = async (agent: AgentDriver) =>
    (await agent.events()).flatMap((event) => (event.type === 'turn_ended' ? [event] : []))

  test('SEC-07 every process of a sandbox is in its kernel group, from the first one on', async () => {
    const agent = await start('run: echo here; sleep 921')
    await saysSomething(agent)
    const processes = stack.sandboxProcesses()
    expect(processes.length).toBeGreaterThan(3)
    for (const line of processes) {
      expect(readFileSync(`/proc/${Number.parseInt(line, 10)}/cgroup`, 'utf8'), line).toMatch(
        /tutti-[0-9a-f]/,
      )
    }
  })

  test('SEC-07 fork bomb: capped, the neighbour works, and a stop takes effect within 10 s', async () => {
    const agent = await start('run: echo armed; f() { f | f & sleep 60; }; f; wait; sleep 60')
    await saysSomething(agent)
    await expect.poll(() => stack.sandboxProcesses().length, { timeout: 10_000 }).toBeGreaterThan(pids / 2)
    const counts: number[] = []
    const timer = setInterval(() => counts.push(stack.sandboxProcesses().length), 200)
    await expectNeighbourWorks()
    clearInterval(timer)
    // The neighbour has a few of its own, and processes are counted while they come and go.
    expect(Math.max(...counts)).toBeLessThan(pids + 20)
    await expectQuickStop(agent)
  })

  test('SEC-07 too many processes: the turn fails with resource_limit', async () => {
    const agent = await start('run: i=0; while [ $i -lt 400 ]; do sleep 61 & i=$((i+1)); done')
    expect((await agent.rest()).state?.reason).toBe('resource_limit')
    const [end] = await turnEnds(agent)
    expect(end!.detail).toContain('processes')
  })

  test('SEC-07 memory bomb: the turn fails with resource_limit, the neighbour works', async () => {
    const agent = await start(`run: node -e 'const kept = []; for (;;) kept.push(Buffer.alloc(4 << 20, 1))'`)
    await expectNeighbourWorks()
    expect((await agent.rest()).state?.reason).toBe('resource_limit')
    const [end] = await turnEnds(agent)
    expect(end!.detail).toContain('memory')
  })

  test('SEC-07 a busy loop per core: the neighbour works, and a stop takes effect within 10 s', async () => {
    const agent = await start('run: echo busy; for i in $(seq $(nproc)); do while :; do :; done & done; wait')
    await saysSomething(agent)
    await expectNeighbourWorks()
    await expectQuickStop(agent)
  })
})
