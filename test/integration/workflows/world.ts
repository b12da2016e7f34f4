import { randomBytes, randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { WorkflowHandle } from '@temporalio/client'
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { DefaultLogger, Runtime, Worker, bundleWorkflowCode, type WorkflowBundle } from '@temporalio/worker'
import {
  agentId,
  agentWorkflowId,
  ensembleId,
  ensembleWorkflowId,
  initialAgentState,
  searchAttributes,
  type AgentCommand,
  type AgentId,
  type Turn,
} from '@tutti/core'
import {
  agentUpdates,
  workflowTypes,
  type AgentTimings,
  type CloudAgentInput,
  type CloudAgentResult,
  type CommandAnswer,
  type CommandRequest,
  type ParallelAgentsInput,
  type ParallelAgentsResult,
} from '@tutti/workflows'
import { createStubActivities, routeActivities, type StubActivities } from './stub-activities.ts'

const configBlobId = `sha256_${'a'.repeat(64)}` as const
const promptBlobId = `sha256_${'b'.repeat(64)}` as const

const timings: AgentTimings = {
  turnTimeoutMs: 600_000,
  inactivityMs: 600_000,
  heartbeatMs: 5000,
  readyTimeoutMs: 60_000,
  checkTimeoutMs: 60_000,
}

const attributeKeys = Object.values(searchAttributes).map((name) =>
  defineSearchAttributeKey(name, SearchAttributeType.KEYWORD),
)

export const newAgentId = (): AgentId => agentId(Date.now(), randomBytes(10))

export const newTurn = (turnId: string): Turn => ({ turnId, promptBlobId, source: 'API' })

export function agentInput(more: Partial<CloudAgentInput> = {}): CloudAgentInput {
  return {
    bcId: newAgentId(),
    owner: 'local',
    title: 'fix it',
    repository: 'repo',
    configBlobId,
    state: initialAgentState,
    incarnation: 0,
    turns: 0,
    hadSandbox: false,
    firstTurn: newTurn('turn-1'),
    hasCheck: false,
    timings,
    ...more,
  }
}

export function ensembleInput(
  children: number,
  more: Partial<ParallelAgentsInput> = {},
): ParallelAgentsInput {
  return {
    ensembleId: ensembleId(Date.now(), randomBytes(10)),
    owner: 'local',
    title: 'fix it',
    repository: 'repo',
    configBlobId,
    children: Array.from({ length: children }, (_, index) => ({
      bcId: newAgentId(),
      configBlobId,
      promptBlobId,
      title: `agent ${index + 1}`,
    })),
    hasCheck: false,
    ensembleTimeoutMs: 3_600_000,
    timings,
    ...more,
  }
}

export interface Agent {
  readonly bcId: AgentId
  readonly handle: WorkflowHandle
  send(command: AgentCommand, requestId?: string): Promise<CommandAnswer>
  result(): Promise<CloudAgentResult>
}

export interface World {
  readonly stubs: StubActivities
  readonly env: TestWorkflowEnvironment
  readonly taskQueue: string
  readonly startAgent: (input: CloudAgentInput) => Promise<Agent>
  readonly agent: (bcId: AgentId) => Agent
  readonly startEnsemble: (
    input: ParallelAgentsInput,
  ) => Promise<{ readonly handle: WorkflowHandle; readonly result: () => Promise<ParallelAgentsResult> }>
}

export interface TemporalForTests {
  readonly env: TestWorkflowEnvironment
  /** Gives the body its own stub activities; with options also a worker of its own. */
  run<T>(body: (world: World) => Promise<T>, options?: { maxCachedWorkflows?: number }): Promise<T>
  close(): Promise<void>
}

/** @param timeSkipping use the test server whose clock jumps over waiting; only one workflow at a time. */
export async function startTemporal(path: string, { timeSkipping = false } = {}): Promise<TemporalForTests> {
  Runtime.install({ logger: new DefaultLogger('ERROR') })
  const executable = { type: 'existing-path' as const, path }
  const env = timeSkipping
    ? await TestWorkflowEnvironment.createTimeSkipping({ server: { executable } })
    : await TestWorkflowEnvironment.createLocal({
        server: { executable, searchAttributes: attributeKeys, log: { format: 'pretty', level: 'error' } },
      })
  if (timeSkipping) {
    await env.connection.operatorService.addSearchAttributes({
      namespace: env.client.options.namespace,
      // 2 is KEYWORD.
      searchAttributes: Object.fromEntries(attributeKeys.map(({ name }) => [name, 2])),
    })
  }
  const workflowBundle = await bundleForTests()
  const shared = await startWorker(env, workflowBundle)
  return {
    env,
    async run(body, options) {
      if (!options) return body(createWorld(env, shared))
      const own = await startWorker(env, workflowBundle, options)
      try {
        return await body(createWorld(env, own))
      } finally {
        await own.stop()
      }
    },
    async close() {
      await shared.stop()
      await env.teardown()
    },
  }
}

interface RunningWorker {
  readonly taskQueue: string
  /** Whose activities answer for an agent or an ensemble. */
  readonly routes: Map<string, StubActivities>
  stop(): Promise<void>
}

async function startWorker(
  env: TestWorkflowEnvironment,
  workflowBundle: WorkflowBundle & { code: string },
  options: { maxCachedWorkflows?: number } = {},
): Promise<RunningWorker> {
  const taskQueue = `test-${randomUUID()}`
  const routes = new Map<string, StubActivities>()
  const worker = await Worker.create({
    connection: env.nativeConnection,
    taskQueue,
    workflowBundle,
    activities: routeActivities((id) => routes.get(id)),
    maxHeartbeatThrottleInterval: 100,
    defaultHeartbeatThrottleInterval: 100,
    shutdownGraceTime: 0,
    ...options,
  })
  const running = worker.run()
  return {
    taskQueue,
    routes,
    async stop() {
      worker.shutdown()
      await running
    },
  }
}

export function bundleForTests(): Promise<WorkflowBundle & { code: string }> {
  const workflowsPath = fileURLToPath(import.meta.resolve('@tutti/workflows/workflows'))
  return bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') })
}

function createWorld(env: TestWorkflowEnvironment, { taskQueue, routes }: RunningWorker): World {
  const { workflow } = env.client
  const stubs = createStubActivities(taskQueue)
  const agent = (bcId: AgentId): Agent => {
    const handle = workflow.getHandle(agentWorkflowId(bcId))
    return {
      bcId,
      handle,
      send: (command, requestId = randomUUID()) =>
        handle.executeUpdate<CommandAnswer, [CommandRequest]>(updateOf(command), {
          args: [{ requestId, command }],
        }),
      result: () => handle.result() as Promise<CloudAgentResult>,
    }
  }
  return {
    stubs,
    env,
    taskQueue,
    agent,
    async startAgent(input) {
      routes.set(input.bcId, stubs)
      await workflow.start(workflowTypes.agent, {
        workflowId: agentWorkflowId(input.bcId),
        taskQueue,
        args: [input],
      })
      return agent(input.bcId)
    },
    async startEnsemble(input) {
      for (const id of [input.ensembleId, ...input.children.map(({ bcId }) => bcId)]) routes.set(id, stubs)
      const handle = await workflow.start(workflowTypes.ensemble, {
        workflowId: ensembleWorkflowId(input.ensembleId),
        taskQueue,
        args: [input],
      })
      return { handle, result: () => handle.result() as Promise<ParallelAgentsResult> }
    },
  }
}

function updateOf(command: AgentCommand): string {
  const name = agentUpdates.find((known) => known === command.type)
  if (!name) throw new Error(`no update for ${command.type}`)
  return name
}
