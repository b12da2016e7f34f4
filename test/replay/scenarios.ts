import { ApplicationFailure } from '@temporalio/common'
import type { TurnResult } from '@tutti/activities'
import { agentStateQuery, ensembleUpdates, releaseSandboxSignal } from '@tutti/workflows'
import type { Agent, World } from '../integration/workflows/world.ts'
import { agentInput, ensembleInput, newTurn } from '../integration/workflows/world.ts'

/** A run whose history is worth keeping; gives the ids of the workflows to keep. */
export type Scenario = (
  world: World,
) => Promise<readonly { readonly workflowId: string; readonly runId?: string }[]>

const completed: TurnResult = { reason: 'completed', failed: false }
const fail = (type: string, ...details: string[]) =>
  ApplicationFailure.create({ type, message: type, nonRetryable: true, details })

async function untilRest(agent: Agent): Promise<void> {
  for (const until = Date.now() + 20_000; Date.now() < until;) {
    const { state } = await agent.handle.query<{ state: { status: string } }>(agentStateQuery)
    if (state.status !== 'RUNNING' && state.status !== 'UNSPECIFIED') return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error('The agent did not come to rest.')
}

async function ended(agent: Agent) {
  await agent.result()
  return [agent.handle]
}

/** Recorded by record.ts under these names; each is one rule that must keep its order of commands. */
export const scenarios: Readonly<Record<string, Scenario>> = {
  async 'agent-child-with-check'({ startAgent }) {
    return ended(await startAgent(agentInput({ ensembleId: 'en-1', hasCheck: true })))
  },
  async 'agent-queue-and-interrupt'({ startAgent, stubs }) {
    const next = stubs.hold('runTurn')
    const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
    await next()
    await agent.send({ type: 'follow_up', turn: newTurn('f1') })
    await agent.send({ type: 'interrupt', turn: newTurn('f2') })
    for (let turn = 0; turn < 2; turn += 1) (await next()).finish(completed)
    return ended(agent)
  },
  async 'agent-stopped-while-provisioning'({ startAgent, stubs }) {
    const next = stubs.hold('provisionSandbox')
    const agent = await startAgent(agentInput({ ensembleId: 'en-1' }))
    await next()
    await agent.send({ type: 'stop', all: true })
    return ended(agent)
  },
  async 'agent-sandbox-lost-four-times'({ startAgent, stubs }) {
    stubs.on('runTurn', async (_input, call) => {
      throw call === 1 ? fail('sandbox_lost', 'planned') : fail('sandbox_lost')
    })
    return ended(await startAgent(agentInput({ ensembleId: 'en-1' })))
  },
  async 'agent-setup-failed'({ startAgent, stubs }) {
    stubs.on('provisionSandbox', async () => {
      throw fail('setup_failed')
    })
    return ended(await startAgent(agentInput()))
  },
  async 'agent-pause-resume-archive'({ startAgent, stubs }) {
    const next = stubs.hold('runTurn')
    const agent = await startAgent(agentInput())
    await next()
    await agent.send({ type: 'pause' })
    await untilRest(agent)
    await agent.send({ type: 'resume' })
    await next()
    await agent.send({ type: 'archive' })
    return ended(agent)
  },
  async 'agent-deliver-and-release'({ startAgent }) {
    const agent = await startAgent(agentInput())
    await untilRest(agent)
    await agent.send({ type: 'deliver' })
    await agent.send({ type: 'follow_up', turn: newTurn('f1') })
    await untilRest(agent)
    await agent.handle.signal(releaseSandboxSignal)
    await agent.send({ type: 'archive' })
    return ended(agent)
  },
  async 'agent-recovered-by-hand'({ startAgent, stubs }) {
    const next = stubs.hold('runTurn')
    const agent = await startAgent(agentInput())
    await next()
    await agent.send({ type: 'recover' })
    ;(await next()).finish(completed)
    await untilRest(agent)
    await agent.send({ type: 'recover', at: 3 })
    await agent.send({ type: 'follow_up', turn: newTurn('f1') })
    ;(await next()).finish(completed)
    await untilRest(agent)
    stubs.on('provisionSandbox', async () => {
      throw fail('data_loss')
    })
    await agent.send({ type: 'recover' })
    return ended(agent)
  },
  async 'agent-inactive'({ startAgent }) {
    const input = agentInput()
    return ended(await startAgent({ ...input, timings: { ...input.timings, inactivityMs: 500 } }))
  },
  async 'agent-cancelled'({ startAgent, stubs }) {
    const next = stubs.hold('runTurn')
    const agent = await startAgent(agentInput())
    await next()
    await agent.handle.cancel()
    return ended(agent)
  },
  async 'agent-expired'({ startAgent }) {
    const agent = await startAgent(agentInput())
    await untilRest(agent)
    await agent.send({ type: 'expire' })
    return ended(agent)
  },
  async 'agent-continued-as-new'({ startAgent, stubs }) {
    const next = stubs.hold('runTurn')
    const agent = await startAgent(agentInput({ testMaxHistory: 10 }))
    const first = await next()
    const { runId } = await agent.handle.describe()
    const { workflowId } = agent.handle
    await agent.send({ type: 'follow_up', turn: newTurn('f1') })
    await agent.send({ type: 'follow_up', turn: newTurn('f2') })
    first.finish(completed)
    for (let turn = 0; turn < 2; turn += 1) (await next()).finish(completed)
    await agent.result()
    return [{ workflowId, runId }, { workflowId }]
  },
  async 'ensemble-with-check'({ startEnsemble, stubs }) {
    const input = ensembleInput(12, { hasCheck: true })
    const [first, second, third] = input.children.map(({ bcId }) => bcId)
    stubs.on('gather', async () => ({
      candidates: 3,
      unchanged: 0,
      alternatives: [[first!, second!], [first!]],
      additions: [second!, third!],
    }))
    stubs.on('verify', async (_input, call) => ({ exitCode: call % 2 === 0 ? 0 : 1 }))
    stubs.on('runTurn', async ({ bcId }) => {
      if (bcId === input.children[11]?.bcId) throw fail('agent_error')
      return completed
    })
    const { handle, result } = await startEnsemble(input)
    await result()
    return [handle]
  },
  async 'ensemble-all-failed'({ startEnsemble, stubs }) {
    stubs.on('runTurn', async () => {
      throw fail('agent_error')
    })
    const { handle, result } = await startEnsemble(ensembleInput(2))
    await result()
    return [handle]
  },
  async 'ensemble-stopped'({ startEnsemble, stubs }) {
    const next = stubs.hold('runTurn')
    const { handle, result } = await startEnsemble(ensembleInput(2))
    await Promise.all([next(), next()])
    await handle.executeUpdate(ensembleUpdates.stop, { args: [{ requestId: 'r' }] })
    await result()
    return [handle]
  },
  async 'ensemble-timeout'({ startEnsemble, stubs }) {
    stubs.hold('runTurn')
    const { handle, result } = await startEnsemble(ensembleInput(2, { ensembleTimeoutMs: 1000 }))
    await result()
    return [handle]
  },
  async 'ensemble-delivery-failed'({ startEnsemble, stubs }) {
    stubs.on('deliver', async () => ({ outcome: 'failed' }))
    const { handle, result } = await startEnsemble(ensembleInput(1))
    await result()
    return [handle]
  },
}
