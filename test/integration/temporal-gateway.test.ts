import { randomUUID } from 'node:crypto'

import { createTemporalGateway } from '@tutti/api'
import { agentWorkflowId, type AgentState } from '@tutti/core'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'

import {
  agentInput,
  ensembleInput,
  newTurn,
  startTemporal,
  type TemporalForTests,
  type World,
} from './workflows/world.ts'

const server = inject('temporalServer')
const signal = new AbortController().signal
const idle: AgentState = { status: 'IDLE', paused: false, reason: 'completed', queue: [] }

describe.skipIf(server === null)('the gateway to Temporal', () => {
  let temporal: TemporalForTests
  beforeAll(async () => {
    temporal = await startTemporal(server!)
  })
  afterAll(() => temporal.close())

  const gatewayOf = ({ env, taskQueue }: Pick<World, 'env' | 'taskQueue'>, answerWithinMs = 30_000) =>
    createTemporalGateway({ client: env.client, taskQueue, answerWithinMs })

  const runIdOf = async ({ env }: World, bcId: `bc-${string}`) =>
    (await env.client.workflow.getHandle(agentWorkflowId(bcId)).describe()).runId

  test('starts an agent once: while it runs and after it has returned, a repeat is a success and no new run', async () => {
    await temporal.run(async (world) => {
      const gateway = gatewayOf(world)
      const { ensembleId } = ensembleInput(1)
      const input = agentInput({ ensembleId })
      const agent = await world.startAgent(input)
      await gateway.startAgent(input, signal)
      const first = await runIdOf(world, input.bcId)
      await agent.result()
      await gateway.startAgent(input, signal)
      expect(await runIdOf(world, input.bcId)).toBe(first)
    })
  })

  test('reopens a run that has just returned, and gives a repeated request its first answer', async () => {
    await temporal.run(async (world) => {
      const gateway = gatewayOf(world)
      const { ensembleId } = ensembleInput(1)
      const { firstTurn: _, ...input } = agentInput({ ensembleId })
      const agent = await world.startAgent({ ...input, firstTurn: newTurn('one') })
      await agent.result()
      const first = await runIdOf(world, input.bcId)
      const request = {
        requestId: randomUUID(),
        command: { type: 'follow_up', turn: newTurn('two') },
      } as const
      const reopened = { ...input, state: idle, turns: 1, incarnation: 1, hadSandbox: true }
      const answer = await gateway.agentCommand(reopened, request, signal)
      expect(answer).toMatchObject({ state: 'RUNNING', position: 0, turnId: 'two' })
      expect(await runIdOf(world, input.bcId)).not.toBe(first)
      const again = await gateway.agentCommand(
        reopened,
        { ...request, command: { type: 'follow_up', turn: newTurn('three') } },
        signal,
      )
      expect(again).toEqual(answer)
      await agent.result()
    })
  })

  test('a refusal is failed_precondition with the words of the state machine', async () => {
    await temporal.run(async (world) => {
      const gateway = gatewayOf(world)
      const { firstTurn: _, ...input } = agentInput({
        state: { ...idle, status: 'ARCHIVED', reason: 'archived' },
      })
      const agent = await world.startAgent({ ...input, firstTurn: newTurn('one'), state: idle })
      await gateway.agentCommand(input, { requestId: randomUUID(), command: { type: 'archive' } }, signal)
      const refused = gateway.agentCommand(
        input,
        { requestId: randomUUID(), command: { type: 'follow_up', turn: newTurn('two') } },
        signal,
      )
      await expect(refused).rejects.toMatchObject({
        code: 'failed_precondition',
        message: 'The agent is ARCHIVED. Resume the agent first.',
      })
      await agent.result()
    })
  })

  test('stops an ensemble; one that has ended, or never was, is a success', async () => {
    await temporal.run(async (world) => {
      const gateway = gatewayOf(world)
      const input = ensembleInput(1)
      const { result } = await world.startEnsemble(input)
      await gateway.stopEnsemble(input.ensembleId, randomUUID(), signal)
      expect(['ERROR', 'COMPLETED']).toContain((await result()).phase)
      await gateway.stopEnsemble(input.ensembleId, randomUUID(), signal)
      await gateway.stopEnsemble(ensembleInput(1).ensembleId, randomUUID(), signal)
    })
  })

  test('gives an operator something to find it by', async () => {
    const gateway = gatewayOf({ env: temporal.env, taskQueue: `nobody-${randomUUID()}` })
    const { ensembleId } = ensembleInput(1)
    const input = agentInput({ ensembleId, title: 'Mend the tests' })
    await gateway.startAgent(input, signal)
    const handle = temporal.env.client.workflow.getHandle(agentWorkflowId(input.bcId))
    const found = await handle.describe()
    expect(
      Object.fromEntries(found.typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value])),
    ).toMatchObject({
      AgentOwner: 'local',
      AgentRepo: 'repo',
      AgentStatus: 'UNSPECIFIED',
      EnsembleId: ensembleId,
    })
    expect(await found.staticSummary()).toBe('Mend the tests')
    await handle.terminate()
  })

  test('says unavailable when no worker answers', async () => {
    const gateway = gatewayOf({ env: temporal.env, taskQueue: `nobody-${randomUUID()}` }, 1500)
    const input = agentInput()
    const call = gateway.agentCommand(
      input,
      { requestId: randomUUID(), command: { type: 'archive' } },
      signal,
    )
    await expect(call).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('tutti doctor') as string,
    })
    await temporal.env.client.workflow
      .getHandle(agentWorkflowId(input.bcId))
      .terminate()
      .catch(() => undefined)
  })
})
