import { createTestRepository } from '@tutti/testkit'
import { driveAgent, startAgent } from '../cases/agent-driver.ts'
import { bareTaskQueue } from './bare-task-queue.ts'
import { startBenchStack } from './bench-stack.ts'
import type { Measurement } from './measurement.ts'
import { median, percentile } from './statistics.ts'

const followUps = 60
/** People do not type back to back: what a message sets in motion (its record in the log) is over before the next one. */
const pauseMs = 80

/** (c) A follow-up accepted by a running agent, against a bare update of a bare workflow; p50 and p95, medians over the runs. */
export async function measureFollowUp(runs: number): Promise<Measurement[]> {
  const stack = await startBenchStack({})
  const repository = createTestRepository({ 'README.md': 'bench\n' })
  const samples = {
    ours: { p50: [] as number[], p95: [] as number[] },
    bare: { p50: [] as number[], p95: [] as number[] },
  }
  try {
    for (let run = 0; run < runs; run += 1) {
      const agent = await startAgent(stack.client, {
        prompt: 'wait',
        repository: repository.path,
        agent: 'command:sleep 600',
      })
      await agent.waitFor((event) => event.type === 'turn_started')
      const receiver = await stack.temporal.workflow.start('bareReceiver', {
        workflowId: `bare-receiver-${Date.now()}`,
        taskQueue: bareTaskQueue,
        args: [],
      })
      const ours: number[] = []
      const bare: number[] = []
      for (let count = 0; count < followUps; count += 1) {
        ours.push(await timed(() => driveAgent(stack.client, agent.bcId).followUp(`message ${count}`)))
        bare.push(
          await timed(() =>
            receiver.executeUpdate<number, [string]>('bare_update', { args: [`message ${count}`] }),
          ),
        )
      }
      samples.ours.p50.push(median(ours))
      samples.ours.p95.push(percentile(ours, 0.95))
      samples.bare.p50.push(median(bare))
      samples.bare.p95.push(percentile(bare, 0.95))
      await receiver.signal('bare_stop')
      await stack.client.agents.stopAgent({ bcId: agent.bcId, all: true })
      await agent.rest()
    }
  } finally {
    await stack.close()
    repository.remove()
  }
  const line = (name: string, p: 'p50' | 'p95'): Measurement => ({
    name,
    unit: 'ms',
    ours: median(samples.ours[p]),
    baseline: median(samples.bare[p]),
    limit: 1.5,
    runs,
  })
  return [line('follow-up accepted, p50', 'p50'), line('follow-up accepted, p95', 'p95')]
}

async function timed(call: () => Promise<unknown>): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, pauseMs))
  const startedAt = performance.now()
  await call()
  return performance.now() - startedAt
}
