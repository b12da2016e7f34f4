import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import { createTuttiClient } from '@tutti/client'
import { createTestRepository } from '@tutti/testkit'
import { startAgent } from '../cases/agent-driver.ts'
import { createBenchTutti, residentMegabytes } from './bench-stack.ts'
import type { Measurement } from './measurement.ts'
import { median } from './statistics.ts'

const agents = 200
/** Idle is when nothing has happened for a while. */
const quietMs = 30_000

/** (d) 200 idle agents whose runs are open (release timer raised) and whose sandboxes are released: memory of `tutti serve worker`. */
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
  const tutti = await createBenchTutti({ TUTTI_INACTIVITY: '1h', TUTTI_MAX_SANDBOXES: '4' })
  const repository = createTestRepository({ 'README.md': 'bench\n' })
  try {
    const { ready: api } = await tutti.serve('api')
    const { ready: worker } = await tutti.serve('worker')
    const key = readFileSync(join(tutti.dataDir, 'local-key'), 'utf8').trim()
    const client = createTuttiClient({ address: api.address, key })
    const waiting = new Set<Promise<unknown>>()
    for (let count = 0; count < agents; count += 1) {
      const work = startAgent(client, {
        prompt: 'nothing',
        repository: repository.path,
        agent: 'command:true',
      }).then((agent) => agent.waitFor((event) => event.type === 'turn_ended'))
      waiting.add(work)
      void work.finally(() => waiting.delete(work))
      if (waiting.size >= 8) await Promise.race(waiting)
    }
    await Promise.all(waiting)
    await sleep(quietMs)
    await checkOpenRuns(api.temporal_address)
    return residentMegabytes(worker.pid)
  } finally {
    await tutti.remove()
    repository.remove()
  }
}

async function checkOpenRuns(address: string): Promise<void> {
  const connection = await Connection.connect({ address })
  const query = 'WorkflowType = "cloudAgent" AND ExecutionStatus = "Running"'
  const { count } = await new Client({ connection }).workflow.count(query)
  await connection.close()
  if (count < agents) throw new Error(`Only ${count} of ${agents} runs are open.`)
}
