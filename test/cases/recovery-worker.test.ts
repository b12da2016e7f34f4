import type { TuttiClient } from '@tutti/client'
import { CloudAgentWorkflowStatus } from '@tutti/proto'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')
const heartbeatMs = 2000

describe.skipIf(!temporalPath)('the worker is lost in the middle of a turn', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository

  beforeAll(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_HEARTBEAT_TIMEOUT: `${heartbeatMs}ms` },
    })
    await stack.serve('api')
    client = connect(stack)
    repository = createTestRepository({ one: '1', two: '2', three: '3' })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  test('REC-01 a killed worker: the turn goes on at the next one, with its files, and each thing is told once', async () => {
    const worker = await stack.serve('worker')
    const content = (letter: string) => letter.repeat(1024)
    const agent = await startAgent(client, {
      prompt: script(
        `write: a.txt ${content('a')}`,
        `write: b.txt ${content('b')}`,
        'run: echo sleeping; sleep 5',
        `write: c.txt ${content('c')}`,
      ),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.waitFor(
      (event) => event.type === 'shell_output_delta' && JSON.stringify(event).includes('sleeping'),
    )
    await worker.kill()
    const killedAt = Date.now()
    await stack.serve('worker')
    let begun = 0
    await agent.waitFor((event) => event.type === 'turn_started' && (begun += 1) === 2)
    expect(Date.now() - killedAt).toBeLessThan(heartbeatMs + 10_000)
    const rest = await agent.rest()
    expect([rest.workflowStatus, rest.state?.reason]).toEqual([CloudAgentWorkflowStatus.IDLE, 'completed'])

    const events = await agent.events()
    const count = (type: (typeof events)[number]['type']) =>
      events.filter((event) => event.type === type).length
    expect([count('user_message'), count('turn_interrupted'), count('turn_ended')]).toEqual([1, 1, 1])
    const calls = (type: string) =>
      events.flatMap((event) => (event.type === type && 'callId' in event ? [event.callId] : []))
    expect(calls('tool_call_completed').toSorted()).toEqual(calls('tool_call_started').toSorted())
    expect(new Set(calls('tool_call_started')).size).toBe(calls('tool_call_started').length)
    const { branch } = await client.agents.deliverAgent({ bcId: agent.bcId })
    expect(repository.tree(branch)).toEqual({
      ...repository.tree('main'),
      'a.txt': `100644 ${content('a')}\n`,
      'b.txt': `100644 ${content('b')}\n`,
      'c.txt': `100644 ${content('c')}\n`,
    })
  })
})
