import type { TuttiClient } from '@tutti/client'
import { TuttiError } from '@tutti/core'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { driveAgent, startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { script } from './script.ts'
import {
  agentCommands,
  agentStates,
  stateGraph,
  stateTable,
  type AgentCommandName,
  type AgentStateName,
} from './state-table.ts'

const temporalPath = inject('temporalServer')

const long = script('run: echo at-work; sleep 900')

/** What one call answered; a refusal as its code, its words and the state it names. */
interface Answer {
  readonly refused?: { readonly code: string; readonly message: string; readonly state: unknown }
  readonly position?: number
  readonly prUrl?: string
}

describe.skipIf(!temporalPath)('API-12 only legal state changes', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  const made: string[] = []

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '8' } })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  async function give(agent: AgentDriver, command: AgentCommandName): Promise<Answer> {
    const { bcId } = agent
    try {
      switch (command) {
        case 'follow-up':
          return { position: (await agent.followUp(long)).position }
        case 'stop':
          await client.agents.stopAgent({ bcId })
          return {}
        case 'pause':
          await client.composers.pauseBackgroundComposer({ bcId })
          return {}
        case 'resume':
          await client.composers.resumeBackgroundComposer({ bcId })
          return {}
        case 'archive':
          await client.composers.archiveBackgroundComposer({ bcId })
          return {}
        case 'make pull request':
          return { prUrl: (await client.composers.makePRBackgroundComposer({ bcId })).prUrl }
      }
    } catch (error) {
      const { code, message, detail } = TuttiError.from(error)
      return { refused: { code, message, state: detail['state'] } }
    }
  }

  /** A new agent in that state, with something that can be delivered. */
  async function agentIn(state: AgentStateName): Promise<AgentDriver> {
    const [status, paused] = state.split('+')
    const write = `write: made.txt ${state}`
    const prompt = status === 'ERROR' ? script(write, 'fail: no luck') : script(write)
    const agent = await startAgent(client, {
      prompt,
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.rest()
    if (status === 'RUNNING') {
      await agent.followUp(long)
      await agent.waitFor((event) => event.type === 'shell_output_delta')
    }
    if (paused) await give(agent, 'pause')
    if (status === 'ARCHIVED') await give(agent, 'archive')
    expect(await agent.state()).toBe(state)
    made.push(agent.bcId)
    return agent
  }

  const statusCount = async (agent: AgentDriver) =>
    (await agent.events()).filter((event) => event.type === 'status').length

  /** Gives one command twice and compares with the table. Leaves the agent in whatever state that is. */
  async function expectTwice(
    agent: AgentDriver,
    state: AgentStateName,
    command: AgentCommandName,
  ): Promise<void> {
    const outcome = stateTable[state][command]
    const label = `${state} × ${command}`
    const before = await statusCount(agent)
    const first = await give(agent, command)
    if (outcome === 'refused') {
      for (const answer of [first, await give(agent, command)]) {
        expect(answer.refused, label).toMatchObject({ code: 'failed_precondition', state })
        expect(answer.refused!.message, label).toContain(`The agent is ${state}.`)
      }
      expect(await agent.state(), label).toBe(state)
      expect(await statusCount(agent), label).toBe(before)
      return
    }
    expect(first.refused, label).toBeUndefined()
    if (command === 'follow-up') {
      const at = outcome === 'queued' ? 1 : 0
      expect(first.position, label).toBe(at)
      expect((await give(agent, command)).position, label).toBe(at + 1)
      await expect
        .poll(async () => (await agent.get()).state?.queuedTurns, { message: label })
        .toBe(outcome === 'queued' ? 2 : 1)
      expect(await agent.state(), label).toBe(outcome === 'queued' ? state : outcome)
      return
    }
    const second = await give(agent, command)
    expect(second, label).toEqual(first)
    await expect.poll(() => agent.state(), { message: label, timeout: 10_000 }).toBe(outcome)
    if (command === 'make pull request') expect(first.prUrl, label).toMatch(/^tutti:/)
    const after = await statusCount(agent)
    expect((await give(agent, command)).refused, label).toBeUndefined()
    // Once changed, the same command again changes nothing: no further status.
    expect(await statusCount(agent), label).toBe(after)
  }

  /** Every command of a row, those that leave the state as it is on one agent, each other on an agent of its own. */
  async function expectRow(state: AgentStateName): Promise<void> {
    const stays = (command: AgentCommandName) => [state, 'refused'].includes(stateTable[state][command])
    const groups = [
      agentCommands.filter(stays),
      ...agentCommands.filter((command) => !stays(command)).map((command) => [command]),
    ]
    await Promise.all(
      groups.map(async (commands) => {
        const agent = await agentIn(state)
        for (const command of commands) await expectTwice(agent, state, command)
        await client.agents.stopAgent({ bcId: agent.bcId, all: true })
      }),
    )
  }

  for (const state of agentStates.filter((name) => name !== 'EXPIRED')) {
    test(`API-12 in ${state}, each command twice in a row`, () => expectRow(state))
  }

  test('API-12 the retention sweep expires agents at rest, and in EXPIRED each command is answered by the table', async () => {
    const resting = await Promise.all(
      (['IDLE', 'IDLE+paused', 'ERROR', 'ERROR+paused', 'ARCHIVED'] as const).map(agentIn),
    )
    await stack.stop()
    await stack.start({ TUTTI_RETENTION: '2s' })
    client = connect(stack)
    for (const { bcId } of resting) {
      const agent = driveAgent(client, bcId)
      await expect.poll(() => agent.state(), { timeout: 30_000, message: bcId }).toBe('EXPIRED')
      expect((await agent.get()).state?.reason).toBe('expired')
      expect((await agent.events()).at(-2)).toMatchObject({ type: 'session_close', reason: 'expired' })
    }
    const agent = driveAgent(client, resting[0]!.bcId)
    for (const command of agentCommands) await expectTwice(agent, 'EXPIRED', command)
  })

  test('API-12 status events of every log form a path in the published graph', async () => {
    expect(made.length).toBeGreaterThan(20)
    for (const bcId of made) {
      let at: AgentStateName | 'UNSPECIFIED' = 'UNSPECIFIED'
      for (const event of await driveAgent(client, bcId).events()) {
        if (event.type !== 'status') continue
        const next = `${event.status}${event.paused ? '+paused' : ''}` as AgentStateName
        expect(stateGraph[at], `${bcId}: ${at} → ${next}`).toContain(next)
        at = next
      }
    }
  })
})
