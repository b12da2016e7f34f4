import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { reasons } from '@tutti/core'
import type { TuttiClient } from '@tutti/client'
import type { RecoverAgentResponse } from '@tutti/proto'
import type { RunEvent } from '@tutti/protocol'
import type { TestRepository, TuttiStack } from '@tutti/testkit'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent, type AgentDriver } from './agent-driver.ts'
import { runStack, type RunningStack } from './run-stack.ts'
import { killAll, sandboxesOf, signalAll } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('a recovery by hand', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let start: RunningStack['start']

  beforeAll(async () => {
    const running = await runStack(
      { TUTTI_MAX_SANDBOXES: '2', TUTTI_STOP_ANSWER: '2s', TUTTI_CAPTURE_INTERVAL: '300ms' },
      { kept: 'k' },
    )
    ;({ stack, client, repository, start } = running)
    return running.remove
  })

  const recover = (agent: AgentDriver, idempotencyKey = '') =>
    client.agents.recoverAgent({ bcId: agent.bcId, idempotencyKey })
  const inWorkspace = async (agent: AgentDriver, path: string) => {
    await agent.followUp(script(`run: cat ${path}`))
    return (await agent.rest()).state?.reason
  }
  const recoveries = async (agent: AgentDriver) =>
    (await agent.events()).filter((event) => event.type === 'recovery')
  const stepsOf = ({ steps }: RecoverAgentResponse) => steps.map(({ name }) => name)

  test('at rest, with a sandbox, with one that was killed, and paused: a new one with the workspace, proven', async () => {
    const agent = await start('run: echo 1 > new; echo 2 > kept; git add new')
    await agent.rest()
    const first = await recover(agent)
    expect(first).toMatchObject({ incarnation: 2, proven: true, index: 'restored', missing: [] })
    expect(stepsOf(first)).toEqual(['fold', 'sandbox', 'clone', 'blobs', 'restore', 'scan'])
    killAll(sandboxesOf(stack).flat())
    expect(await recover(agent)).toMatchObject({ incarnation: 3, manifestDigest: first.manifestDigest })
    await client.composers.pauseBackgroundComposer({ bcId: agent.bcId })
    const key = randomUUID()
    const paused = await recover(agent, key)
    expect(paused).toMatchObject({ incarnation: 4, proven: true })
    expect(await agent.state()).toBe('IDLE+paused')
    // The same request again, also when it could not be granted any more.
    expect(await recover(agent, key)).toEqual(paused)
    await client.composers.archiveBackgroundComposer({ bcId: agent.bcId })
    expect(await recover(agent, key)).toEqual(paused)
    await expect(recover(agent)).rejects.toMatchObject({ code: 'failed_precondition' })
    await client.composers.resumeBackgroundComposer({ bcId: agent.bcId })
    expect(await inWorkspace(agent, 'new')).toBe('completed')
    const asked = (await recoveries(agent)).filter(({ reason }) => reason === 'requested')
    expect(asked.map(({ incarnation }) => incarnation)).toEqual([2, 3, 4])
  })

  test('while a turn runs, in a sandbox that stands still: the turn goes on in the next one, the message is there once', async () => {
    const agent = await start(
      'write: first.txt 1',
      'run: if [ -e begun ]; then exit 0; fi; touch begun; sleep 963',
      'write: second.txt 2',
      'echo-context:',
    )
    await agent.seen((event) => event.type === 'file_change' && event.path === 'begun')
    signalAll(sandboxesOf(stack).flat(), 'SIGSTOP')
    const answer = await recover(agent)
    expect(answer).toMatchObject({ incarnation: 2, proven: true })
    expect((await agent.rest()).state?.reason).toBe('completed')
    const events = await agent.events()
    const said = events.map((event) => (event.type === 'text_delta' ? event.text : '')).join('')
    expect(said).toMatch(/message 2 of 2: This is no new task.*You have another sandbox/)
    expect(events.filter(({ type }) => type === 'user_message')).toHaveLength(1)
    expect(events.filter(({ type }) => type === 'turn_interrupted')).toMatchObject([
      { incarnation: 1, restart: 0, reason: 'requested' },
    ])
    const { branch } = await client.agents.deliverAgent({ bcId: agent.bcId })
    expect(Object.keys(repository.tree(branch)).toSorted()).toEqual([
      'begun',
      'first.txt',
      'kept',
      'second.txt',
    ])
    expect(stack.sandboxProcesses().join('\n')).not.toContain('sleep 963')
  })

  test('after an error, and two at once: each gets a sandbox of its own, and the agent stays in ERROR', async () => {
    const agent = await start('run: echo 1 > made; exit 3')
    await agent.rest()
    const both = await Promise.all([recover(agent), recover(agent)])
    expect(both.map(({ incarnation }) => incarnation).toSorted((one, other) => one - other)).toEqual([2, 3])
    expect(await agent.state()).toBe('ERROR')
    expect(await inWorkspace(agent, 'made')).toBe('completed')
  })

  test('at an offset: the workspace of then is the newest, the agent is told, and what was later is there still', async () => {
    const agent = await start('write: first.txt 1', 'run: echo 2 > first.txt; rm kept; git commit -qam mine')
    await agent.rest()
    const { offset: at } = await agent.waitFor((event) => event.type === 'tool_call_completed')
    const { offset: last } = await agent.waitFor((event) => event.type === 'turn_ended')
    await expect(
      client.agents.recoverAgent({ bcId: agent.bcId, atOffsetKey: at.replaceAll('0', '1') }),
    ).rejects.toMatchObject({ code: 'invalid_argument', detail: { field: 'at_offset_key' } })
    const back = await client.agents.recoverAgent({ bcId: agent.bcId, atOffsetKey: at })
    expect(back).toMatchObject({ incarnation: 2, proven: true, missing: [] })
    expect(stepsOf(back).at(-1)).toBe('put_back')
    await agent.followUp(script('run: cat first.txt kept; git log --format=%s', 'echo-context:'))
    await agent.rest()
    const since = (await agent.events()).filter(({ offset }) => offset > last)
    expect(shellOutput(since)).toBe('1\nkstart\n')
    const said = since.map((event) => (event.type === 'text_delta' ? event.text : '')).join('')
    expect(said).toContain(`The user has put the working directory back to an earlier state (${at})`)
    await agent.followUp(script('echo-context:'))
    await agent.rest()
    const { offset: end } = since.at(-1)!
    const later = (await agent.events()).filter(({ offset }) => offset > end)
    const told = later.map((event) => (event.type === 'text_delta' ? event.text : '')).join('')
    // Once: this is the message of before, in the conversation.
    expect(told.split('message 3 of 3:')[1]).not.toContain('put the working directory back')
    const { branch } = await client.agents.deliverAgent({ bcId: agent.bcId })
    expect(repository.tree(branch)).toEqual({ kept: '100644 k', 'first.txt': '100644 1\n' })
    const command = ['agent', 'recover', agent.bcId, '--verify', '--at', last]
    expect(await stack.json(command)).toMatchObject({ proven: true })
  })

  test('the command prints the steps; without it the recovery goes on', async () => {
    const agent = await startAgent(client, {
      prompt: script('run: echo 1 > made'),
      repository: repository.path,
      agent: 'embedded:scripted',
      options: { setupCommand: 'sleep 1' },
    })
    await agent.rest()
    const { code, stdout } = await stack.run(['agent', 'recover', agent.bcId])
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(
        /^sandbox 2 is ready: checkpoint [0-9a-f]{40} and 0 changes after it\ndigest [0-9a-f]{64}, as recorded; index rebuilt\nfold: \d+ ms\nsandbox: \d+ ms\nclone: \d+ ms\nblobs: \d+ ms\nrestore: \d+ ms\nscan: \d+ ms\nsetup: \d+ ms\n$/,
      ),
    ])
    const command = stack.cli(['agent', 'recover', agent.bcId])
    const isSetUp = (event: RunEvent) =>
      event.type === 'sandbox' && event.incarnation === 3 && event.state === 'setup'
    await agent.seen(isSetUp)
    command.process.kill('SIGINT')
    expect((await command.done).code).toBe(reasons.stopped_by_user.exit)
    while (!(await recoveries(agent)).some(({ incarnation }) => incarnation === 3)) await setTimeout(50)
  })
})
