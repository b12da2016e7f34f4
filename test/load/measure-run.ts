import { create } from '@bufbuild/protobuf'
import {
  EnsembleSpecSchema,
  Isolation,
  ParallelAgentWorkflowStatusUpdate_Phase as Phase,
  PullRequestMode,
  RepositorySourceSchema,
} from '@tutti/proto'
import { createTestRepository } from '@tutti/testkit'
import { join } from 'node:path'
import { bareTaskQueue } from './bare-task-queue.ts'
import { startBenchStack, type BenchStack } from './bench-stack.ts'
import type { Measurement } from './measurement.ts'
import { median } from './statistics.ts'

const agents = 8

/** (a) 8 agents that each write one file under bubblewrap, request to pull request, against the bare work. */
export async function measureRun(runs: number): Promise<Measurement[]> {
  const stack = await startBenchStack({ TUTTI_MAX_SANDBOXES: String(agents) })
  const repository = createTestRepository({ 'README.md': 'bench\n' })
  try {
    const { repository: registered } = await stack.client.repositories.addRepository({
      path: repository.path,
    })
    await ours(stack, registered!.name)
    const counts = await countActivities(stack, await ours(stack, registered!.name))
    await bare(stack, repository.path, 'warm-up', counts)
    const samples = { ours: [] as number[], bare: [] as number[] }
    for (let run = 0; run < runs; run += 1) {
      samples.ours.push((await ours(stack, registered!.name)).ms)
      samples.bare.push(await bare(stack, repository.path, `run-${run}`, counts))
    }
    return [
      {
        name: '8 agents, request to pull request',
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

interface Run {
  readonly ms: number
  readonly ensembleId: string
  readonly bcIds: readonly string[]
}

async function ours({ client }: BenchStack, name: string): Promise<Run> {
  const spec = create(EnsembleSpecSchema, {
    prompt: 'write one file',
    repository: create(RepositorySourceSchema, { location: { case: 'registered', value: name } }),
    agents: Array.from({ length: agents }, (_, index) => ({
      spec: `command:sh -c 'echo ${index} > file-${index}.txt'`,
    })),
    strategy: 'merge',
    pullRequest: PullRequestMode.READY,
    sandbox: { isolation: Isolation.BUBBLEWRAP },
  })
  const startedAt = performance.now()
  const { ensembleId, bcIds } = await client.composers.startParallelAgentWorkflow({ spec })
  for await (const update of client.composers.streamParallelAgentWorkflowStatus({ ensembleId })) {
    if (update.phase === Phase.ERROR) throw new Error(`The ensemble failed: ${update.reason}`)
    if (update.phase === Phase.COMPLETED) return { ms: performance.now() - startedAt, ensembleId, bcIds }
  }
  throw new Error('The stream ended before the ensemble.')
}

interface Counts {
  readonly child: number
  readonly parent: number
}

/** How many activities our workflows schedule; the baseline does as many. */
async function countActivities({ temporal }: BenchStack, { ensembleId, bcIds }: Run): Promise<Counts> {
  const count = async (workflowId: string) => {
    const { events } = await temporal.workflow.getHandle(workflowId).fetchHistory()
    return events?.filter((event) => event.activityTaskScheduledEventAttributes).length ?? 0
  }
  return { child: await count(`agent/${bcIds[0]}`), parent: await count(`ensemble/${ensembleId}`) }
}

async function bare(
  { temporal, folder }: BenchStack,
  repository: string,
  name: string,
  counts: Counts,
): Promise<number> {
  const id = `bare-${name}-${Date.now()}`
  const startedAt = performance.now()
  await temporal.workflow.execute('bareParent', {
    workflowId: id,
    taskQueue: bareTaskQueue,
    args: [
      {
        id,
        children: agents,
        childActivities: counts.child - 1,
        parentActivities: counts.parent - 1,
        repository,
        workDir: join(folder, name),
      },
    ],
  })
  return performance.now() - startedAt
}
