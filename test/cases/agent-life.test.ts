import { durationFromMs } from '@bufbuild/protobuf/wkt'
import type { TuttiClient } from '@tutti/client'
import { CloudAgentWorkflowStatus } from '@tutti/proto'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('the life of one agent, over the API', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '6' } })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  const scripted = (...lines: readonly string[]) =>
    startAgent(client, { prompt: script(...lines), repository: repository.path, agent: 'embedded:scripted' })

  test('API-08 a stop in the middle of a tool takes effect and keeps the agent usable', async () => {
    const agent = await scripted(
      'run: echo w > w.txt; (trap "" TERM; sleep 604 & wait; sleep 604) & echo started; sleep 603',
    )
    await agent.waitFor((event) => event.type === 'shell_output_delta' && 'data' in event.event)
    const stoppedAt = Date.now()
    await client.agents.stopAgent({ bcId: agent.bcId })
    const rest = await agent.rest()
    expect(Date.now() - stoppedAt).toBeLessThan(5000)
    expect(rest.workflowStatus).toBe(CloudAgentWorkflowStatus.IDLE)
    expect(stack.sandboxProcesses().filter((line) => line.includes('sleep'))).toEqual([])
    const events = await agent.events()
    expect(events.filter((event) => event.type === 'turn_ended')).toMatchObject([
      { reason: 'stopped_by_user' },
    ])
    expect(events.filter((event) => event.type === 'tool_call_completed')).toMatchObject([
      { outcome: 'cancelled' },
    ])
    expect(events.some((event) => event.type === 'file_change' && event.path === 'w.txt')).toBe(true)

    await agent.followUp(script('run: cat w.txt'))
    await agent.rest()
    const after = await agent.events()
    expect(shellOutput(after)).toContain('w\n')
    expect(after.filter((event) => event.type === 'sandbox' && event.state === 'ready')).toHaveLength(1)
  })

  test('API-09 two follow-ups at the same time are queued in the order of their answers', async () => {
    const agent = await scripted('run: echo started; sleep 1')
    await agent.waitFor((event) => event.type === 'tool_call_started')
    const answers = await Promise.all([agent.followUp(script('say: F1')), agent.followUp(script('say: F2'))])
    expect(answers.map((answer) => answer.position).sort((left, right) => left - right)).toEqual([1, 2])
    await agent.rest()
    const events = await agent.events()
    const order = [...answers]
      .sort((left, right) => left.position - right.position)
      .map((answer) => answer.turnId)
    const messages = events.flatMap((event) => (event.type === 'user_message' ? [event.turnId] : []))
    expect(messages.slice(1)).toEqual(order)
    expect(events.flatMap((event) => (event.type === 'turn_started' ? [event.turnId] : [])).slice(1)).toEqual(
      order,
    )
    expect(events.flatMap((event) => (event.type === 'turn_ended' ? [event.reason] : []))).toEqual([
      'completed',
      'completed',
      'completed',
    ])
  })

  test('API-09 an interrupt ends the current turn and comes before what waits', async () => {
    const agent = await scripted('run: echo started; sleep 30')
    await agent.waitFor((event) => event.type === 'tool_call_started')
    const first = await agent.followUp(script('say: F1'))
    const second = await agent.followUp(script('say: F2'), 'interrupt')
    await agent.rest()
    const events = await agent.events()
    expect(events.flatMap((event) => (event.type === 'turn_ended' ? [event.reason] : []))).toEqual([
      'interrupted',
      'completed',
      'completed',
    ])
    expect(events.flatMap((event) => (event.type === 'turn_started' ? [event.turnId] : [])).slice(1)).toEqual(
      [second.turnId, first.turnId],
    )
  })

  // A follower that is kept waiting is kept for 30 s.
  test(
    'API-09 a repeated message is one message, whatever has become of the agent since',
    { timeout: 30_000 },
    async () => {
      const agent = await scripted('say: begun')
      await agent.rest()
      const again = () =>
        client.composers.addAsyncFollowupBackgroundComposer({
          bcId: agent.bcId,
          followup: script('say: F1'),
          tutti: { idempotencyKey: `again-${agent.bcId}` },
        })
      const { turnId } = await again()
      await agent.waitFor((event) => event.type === 'turn_ended' && event.turnId === turnId)
      await client.composers.archiveBackgroundComposer({ bcId: agent.bcId })
      expect(await again()).toMatchObject({ turnId, position: 0 })
      await client.composers.resumeBackgroundComposer({ bcId: agent.bcId })
      expect(await again()).toMatchObject({ turnId, position: 0 })

      await agent.followUp(script('say: F2'))
      await agent.rest()
      expect(await again()).toMatchObject({ turnId, position: 0 })
      // Nothing is to come: who follows now is not kept waiting.
      await expect(agent.waitFor(() => false)).rejects.toThrow('ended without')
      const events = await agent.events()
      for (const type of ['user_message', 'turn_started', 'turn_ended'] as const) {
        expect(events.filter((event) => event.type === type)).toHaveLength(3)
      }
    },
  )

  test('API-09 a synchronous message is answered at the end of its turn, and its repeat with the same end', async () => {
    const agent = await scripted('say: begun')
    await agent.rest()
    const send = () =>
      client.composers.addAsyncFollowupBackgroundComposer({
        bcId: agent.bcId,
        followup: script('say: F1'),
        synchronous: true,
        tutti: { idempotencyKey: `synchronous-${agent.bcId}` },
      })
    const { turnId, reason } = await send()
    expect(reason).toBe('completed')
    await agent.waitFor((event) => event.type === 'turn_ended' && event.turnId === turnId)
    await agent.followUp(script('say: F2'))
    await agent.rest()
    expect(await send()).toMatchObject({ turnId, reason })
    expect((await agent.events()).filter(({ type }) => type === 'user_message')).toHaveLength(3)
  })

  test('API-09 a synchronous message that will not run is answered as soon as the agent rests, without a reason', async () => {
    const agent = await scripted('run: sleep 600')
    await agent.waitFor((event) => event.type === 'tool_call_started')
    const { composers, agents } = client
    const { bcId } = agent
    const sent = composers.addAsyncFollowupBackgroundComposer({ bcId, followup: 'x', synchronous: true })
    await agent.waitFor((event) => event.type === 'status' && event.queued === 1)
    await agents.stopAgent({ bcId, all: true })
    expect(await sent).toMatchObject({ reason: '', workflowStatus: CloudAgentWorkflowStatus.IDLE })
    await composers.pauseBackgroundComposer({ bcId })
    expect(
      await composers.addAsyncFollowupBackgroundComposer({ bcId, followup: 'x', synchronous: true }),
    ).toMatchObject({ reason: '', position: 1, workflowStatus: CloudAgentWorkflowStatus.IDLE })
  })

  test('API-10 an archived agent refuses a follow-up until it is resumed, and then has files and conversation', async () => {
    const agent = await scripted('write: kept.txt <<EOF', 'kept', 'EOF', 'say: the code word is amber-17')
    await agent.rest()
    await client.composers.archiveBackgroundComposer({ bcId: agent.bcId })
    expect(await agent.state()).toBe('ARCHIVED')
    const before = await agent.events()
    await expect(agent.followUp('hello again')).rejects.toMatchObject({ code: 'failed_precondition' })
    expect((await agent.events()).filter((event) => event.type === 'user_message')).toHaveLength(
      before.filter((event) => event.type === 'user_message').length,
    )
    await client.composers.resumeBackgroundComposer({ bcId: agent.bcId })
    expect(await agent.state()).toBe('IDLE')
    expect((await agent.events()).filter((event) => event.type === 'turn_started')).toHaveLength(1)
    await agent.followUp(script('run: cat kept.txt'))
    await agent.rest()
    expect(shellOutput(await agent.events())).toContain('kept')
    expect(await agent.state()).toBe('IDLE')
  })

  /** Reads the stream to its end, then compares its last status with what get and list say at once. */
  async function expectAgreement(agent: AgentDriver, reason: string): Promise<void> {
    const seen: string[] = []
    for await (const { message } of client.composers.streamConversation({ bcId: agent.bcId })) {
      if (message.case === 'workflowStatusWithOffset') {
        seen.push(CloudAgentWorkflowStatus[message.value.workflowStatus])
      }
    }
    const got = await agent.get()
    const { composers } = await client.composers.listBackgroundComposers({
      pageSize: 1000,
      includeArchived: true,
    })
    const listed = composers.find((composer) => composer.bcId === agent.bcId)!
    const last = seen.at(-1)
    expect(CloudAgentWorkflowStatus[got.workflowStatus]).toBe(last)
    expect(CloudAgentWorkflowStatus[listed.workflowStatus]).toBe(last)
    expect(got.state?.reason).toBe(reason)
    // The stream's end is the record's: nothing of the turn comes behind it.
    const events = await agent.events()
    const status = events.findLastIndex((event) => event.type === 'status')
    expect(events.slice(status + 1).filter((event) => 'turnId' in event)).toEqual([])
  }

  test('STR-16 stream, get and list agree at the end, and the stream closes after the last event', async () => {
    for (const [lines, reason] of [
      [['say: done'], 'completed'],
      [['fail: no luck'], 'agent_error'],
      [['run: exit 3'], 'agent_error'],
    ] as const) {
      await expectAgreement(await scripted(...lines), reason)
    }
  })

  test('STR-16 they agree for a turn that is cancelled, timed out or archived away', async () => {
    const stopped = await scripted('run: echo started; sleep 605')
    await stopped.waitFor((event) => event.type === 'tool_call_started')
    const stoppedEnd = expectAgreement(stopped, 'stopped_by_user')
    await client.agents.stopAgent({ bcId: stopped.bcId })
    await stoppedEnd

    const late = await startAgent(client, {
      prompt: script('run: sleep 606'),
      repository: repository.path,
      agent: 'embedded:scripted',
      options: { agent: { spec: 'embedded:scripted' }, turnTimeout: durationFromMs(1500) },
    })
    await expectAgreement(late, 'timeout')

    const archived = await scripted('run: echo started; sleep 607')
    await archived.waitFor((event) => event.type === 'tool_call_started')
    const archivedEnd = expectAgreement(archived, 'archived')
    await client.composers.archiveBackgroundComposer({ bcId: archived.bcId })
    await archivedEnd
  })

  test('STR-16 a stream opened right after create is empty at first and then fills', async () => {
    const { repository: registered } = await client.repositories.addRepository({ path: repository.path })
    const { agent } = await client.agents.createAgent({
      prompt: script('say: hello'),
      repository: { location: { case: 'registered', value: registered!.name } },
      options: { agent: { spec: 'embedded:scripted' } },
    })
    const stream = client.agents.streamAgentEvents({ bcId: agent!.bcId, follow: true })
    const types: string[] = []
    const reading = (async () => {
      for await (const { eventJson } of stream) {
        if (eventJson) types.push((JSON.parse(eventJson) as { type: string }).type)
      }
    })()
    await reading
    expect(types[0]).toBe('session_start')
    expect(types).toContain('turn_ended')
    expect(types.at(-1)).toBe('status')
  })
})
