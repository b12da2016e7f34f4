import { create } from '@bufbuild/protobuf'
import { EnsembleSpecSchema, Isolation, PullRequestMode, RepositorySourceSchema } from '@tutti/proto'
import { createTestRepository } from '@tutti/testkit'
import { bareTaskQueue } from './bare-task-queue.ts'
import { startBenchStack, type BenchStack } from './bench-stack.ts'
import type { Measurement } from './measurement.ts'
import { median } from './statistics.ts'

const children = 50

/** (b) 50 children: request to all child workflows started, against 50 bare children. */
export async function measureFanOut(runs: number): Promise<Measurement[]> {
  const stack = await startBenchStack({ TUTTI_MAX_SANDBOXES: '2' })
  const repository = createTestRepository({ 'README.md': 'bench\n' })
  try {
    const { repository: registered } = await stack.client.repositories.addRepository({
      path: repository.path,
    })
    await ours(stack, registered!.name)
    await bare(stack, 'warm-up')
    const samples = { ours: [] as number[], bare: [] as number[] }
    for (let run = 0; run < runs; run += 1) {
      samples.ours.push(await ours(stack, registered!.name))
      samples.bare.push(await bare(stack, `run-${run}`))
    }
    return [
      {
        name: '50 children, request to all started',
        unit: 'ms',
        ours: median(samples.ours),
        baseline: median(samples.bare),
        limit: 2,
        runs,
      },
    ]
  } finally {
    await stack.close()
    repository.remove()
  }
}

async function ours(stack: BenchStack, name: string): Promise<number> {
  const { client } = stack
  const spec = create(EnsembleSpecSchema, {
    prompt: 'wait',
    repository: create(RepositorySourceSchema, { location: { case: 'registered', value: name } }),
    agents: [{ spec: 'command:sleep 600' }],
    count: children,
    strategy: 'pick',
    pullRequest: PullRequestMode.NONE,
    sandbox: { isolation: Isolation.BUBBLEWRAP },
  })
  const startedAt = Date.now()
  const { ensembleId } = await client.composers.startParallelAgentWorkflow({ spec })
  const ms = (await lastStart(stack, `ensemble/${ensembleId}`)) - startedAt
  await client.ensembles.stopEnsemble({ ensembleId })
  await stack.temporal.workflow.getHandle(`ensemble/${ensembleId}`).result()
  return ms
}

async function bare(stack: BenchStack, name: string): Promise<number> {
  const id = `bare-fan-${name}-${Date.now()}`
  const startedAt = Date.now()
  const handle = await stack.temporal.workflow.start('bareFanOut', {
    workflowId: id,
    taskQueue: bareTaskQueue,
    args: [{ id, children, childActivities: 1, parentActivities: 0 }],
  })
  const ms = (await lastStart(stack, id)) - startedAt
  await handle.result()
  return ms
}

/** When the last child had been started, by the server's own clock. */
async function lastStart({ temporal }: BenchStack, workflowId: string): Promise<number> {
  for (;;) {
    const { events } = await temporal.workflow.getHandle(workflowId).fetchHistory()
    const started = events?.filter((event) => event.childWorkflowExecutionStartedEventAttributes) ?? []
    const time = started.at(-1)?.eventTime
    if (started.length === children && time) return Number(time.seconds) * 1000 + (time.nanos ?? 0) / 1e6
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
