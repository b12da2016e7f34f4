import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { durationFromMs } from '@bufbuild/protobuf/wkt'
import type { TuttiClient } from '@tutti/client'
import { BackgroundComposerStatus, Isolation } from '@tutti/proto'
import type { TestRepository, TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { driveAgent, startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { nothingLeft } from './nothing-left.ts'
import { runStack } from './run-stack.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('SBX-04 how a sandbox starts', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  const flags = mkdtempSync(join(tmpdir(), 'tutti-flags-'))

  beforeAll(async () => {
    const running = await runStack({ TUTTI_MAX_SANDBOXES: '4', TUTTI_HEARTBEAT_TIMEOUT: '2s' })
    ;({ stack, client, repository } = running)
    return running.remove
  })
  afterAll(() => rmSync(flags, { recursive: true }))

  const withSetup = (setupCommand: string, readyMs: number) =>
    startAgent(client, {
      prompt: 'write: done.txt yes',
      repository: repository.path,
      agent: 'embedded:scripted',
      options: {
        agent: { spec: 'embedded:scripted' },
        sandbox: { isolation: Isolation.BUBBLEWRAP, mounts: [flags] },
        setupCommand,
        readyTimeout: durationFromMs(readyMs),
      },
    })

  /** What the log says about sandboxes, in order. */
  const sandboxStates = async (agent: AgentDriver) =>
    (await agent.events()).flatMap((event) => (event.type === 'sandbox' ? [event.state] : []))
  const turnEnd = async (agent: AgentDriver) => {
    const ended = (await agent.events()).filter((event) => event.type === 'turn_ended')
    expect(ended).toHaveLength(1)
    return ended[0]!
  }
  /** At most three sandboxes, and each was destroyed before the next was created. */
  const expectBoots = (states: readonly string[], count: number) => {
    const ends = states.filter((state) => state === 'creating' || state === 'destroyed')
    expect(ends).toEqual(Array.from({ length: count }, () => ['creating', 'destroyed']).flat())
  }

  test('SBX-04 a setup slower than the ready budget: boot_timeout with the last setup output', async () => {
    const startedAt = Date.now()
    const agent = await withSetup(
      'seq 1 3000; echo compiling the slow part; (trap "" TERM; setsid sleep 3600 &) ; sleep 3600',
      4000,
    )
    const rest = await agent.rest()
    expect(Date.now() - startedAt).toBeLessThan(4000 + 8000)
    expect(await agent.state()).toBe('ERROR')
    expect(rest.state?.reason).toBe('boot_timeout')
    const { reason, detail } = await turnEnd(agent)
    expect(reason).toBe('boot_timeout')
    expect(detail).toContain('2999\n3000\ncompiling the slow part')
    expectBoots(await sandboxStates(agent), 1)
    await nothingLeft(stack)
  })

  test('SBX-04 a setup that fails is tried in three sandboxes, one after the other: setup_failed with its output', async () => {
    const agent = await withSetup('seq 1 3000; echo no compiler here >&2; exit 4', 60_000)
    const rest = await agent.rest()
    expect(rest.state?.reason).toBe('setup_failed')
    const { reason, detail } = await turnEnd(agent)
    expect(reason).toBe('setup_failed')
    expect(detail).toContain('ended with exit code 4')
    expect(detail).toContain('3000\n')
    expect(detail).toContain('no compiler here')
    expect((await client.agents.getAgent({ bcId: agent.bcId })).agent?.detail).toContain('no compiler here')
    expectBoots(await sandboxStates(agent), 3)
    await nothingLeft(stack)
  })

  test.each([
    ['a mount that is not there', { mounts: ['/opt/tutti-missing'] }, /\/opt\/tutti-missing, does not exist/],
    ['a variable that the worker lacks', { env: ['TUTTI_NOT_SET'] }, /TUTTI_NOT_SET is not set/],
  ])('SBX-04 %s is no matter of another try: setup_failed at once', async (_what, sandbox, words) => {
    const agent = await startAgent(client, {
      prompt: 'write: done.txt yes',
      repository: repository.path,
      agent: 'embedded:scripted',
      options: { sandbox: { isolation: Isolation.BUBBLEWRAP, ...sandbox } },
    })
    expect((await agent.rest()).state?.reason).toBe('setup_failed')
    const { reason, detail } = await turnEnd(agent)
    expect(reason).toBe('setup_failed')
    expect(detail).toMatch(words)
    expectBoots(await sandboxStates(agent), 1)
  })

  test('SBX-04 a commit that the repository does not have: setup_failed with its name', async () => {
    const path = repository.path
    const { repository: added } = await client.repositories.addRepository({ path })
    const { agent: created } = await client.agents.createAgent({
      prompt: 'write: done.txt yes',
      repository: { location: { case: 'registered', value: added!.name }, ref: '0123456789' },
      options: { agent: { spec: 'embedded:scripted' } },
    })
    const agent = driveAgent(client, created!.bcId)
    expect((await agent.rest()).state?.reason).toBe('setup_failed')
    expect((await turnEnd(agent)).detail).toContain('no commit at "0123456789"')
  })

  test('SBX-04 the server is killed while the sandbox is created: the next one goes on, within the budget', async () => {
    const go = join(flags, 'go')
    const budgetMs = 40_000
    const agent = await withSetup(`echo waiting; until [ -e ${go} ]; do sleep 0.05; done`, budgetMs)
    await agent.waitFor((event) => event.type === 'sandbox' && event.state === 'setup')
    const { composers } = await client.composers.listBackgroundComposers({ pageSize: 100 })
    const listed = composers.find(({ bcId }) => bcId === agent.bcId)
    expect(listed?.status).toBe(BackgroundComposerStatus.CREATING)
    await stack.kill()
    const killedAt = Date.now()
    await stack.start()
    client = connect(stack)
    const next = driveAgent(client, agent.bcId)
    writeFileSync(go, '')
    const rest = await next.rest()
    expect(Date.now() - killedAt).toBeLessThan(budgetMs)
    expect(rest.state?.reason).toBe('completed')
    expect(rest.filesChanged).toBe(1)
    expect((await sandboxStates(next)).filter((state) => state === 'ready')).toHaveLength(1)
  })
})
