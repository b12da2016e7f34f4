import { createTestRepository } from '@tutti/testkit'
import { startAgent } from '../cases/agent-driver.ts'
import { residentMegabytes, startBenchStack } from './bench-stack.ts'
import type { Measurement } from './measurement.ts'
import { median } from './statistics.ts'

const agents = 200

/** (d) 200 idle agents whose runs are open (release timer raised) and whose sandboxes are released: memory of the process that works. */
export async function measureIdle(runs: number): Promise<Measurement[]> {
  const samples: number[] = []
  // Each takes minutes; memory varies little.
  const rounds = Math.min(runs, 3)
  for (let round = 0; round < rounds; round += 1) samples.push(await idleMemory())
  return [
    {
      name: '200 idle agents with open runs, resident memory',
      unit: 'MB',
      ours: median(samples),
      limit: 400,
      runs: rounds,
    },
  ]
}

async function idleMemory(): Promise<number> {
  const stack = await startBenchStack({ TUTTI_INACTIVITY: '1h', TUTTI_MAX_SANDBOXES: '4' })
  const repository = createTestRepository({ 'README.md': 'bench\n' })
  try {
    const waiting = new Set<Promise<unknown>>()
    for (let count = 0; count < agents; count += 1) {
      const work = startAgent(stack.client, {
        prompt: 'nothing',
        repository: repository.path,
        agent: 'command:true',
      }).then((agent) => agent.waitFor((event) => event.type === 'turn_ended'))
      waiting.add(work)
      void work.finally(() => waiting.delete(work))
      if (waiting.size >= 8) await Promise.race(waiting)
    }
    await Promise.all(waiting)
    let open = 0
    for await (const _ of stack.temporal.workflow.list({
      query: 'WorkflowType = "cloudAgent" AND ExecutionStatus = "Running"',
    }))
      open += 1
    if (open < agents) throw new Error(`Only ${open} of ${agents} runs are open.`)
    return residentMegabytes(stack.tutti.ready().pid)
  } finally {
    await stack.close()
    repository.remove()
  }
}
