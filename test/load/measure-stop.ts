import { readFileSync, readdirSync } from 'node:fs'
import { createTestRepository } from '@tutti/testkit'
import { startAgent } from '../cases/agent-driver.ts'
import { startBenchStack } from './bench-stack.ts'
import type { Measurement } from './measurement.ts'
import { percentile } from './statistics.ts'

const stopsPerRun = 4

/** (e) Stop of an agent under bubblewrap with a process that ignores SIGTERM: until everything of it is dead. */
export async function measureStop(runs: number): Promise<Measurement[]> {
  const stack = await startBenchStack({})
  const repository = createTestRepository({ 'README.md': 'bench\n' })
  const samples: number[] = []
  try {
    for (let count = 0; count < runs * stopsPerRun; count += 1) {
      const marker = `60${process.pid}${count}`
      const agent = await startAgent(stack.client, {
        prompt: 'resist',
        repository: repository.path,
        agent: `command:sh -c 'trap "" TERM; setsid sh -c "trap : TERM; while :; do sleep ${marker}; done" & while :; do sleep ${marker}; done'`,
      })
      await agent.waitFor((event) => event.type === 'tool_call_started')
      while (alive(marker) < 2) await new Promise((resolve) => setTimeout(resolve, 20))
      const startedAt = performance.now()
      await stack.client.agents.stopAgent({ bcId: agent.bcId })
      while (alive(marker) > 0) await new Promise((resolve) => setTimeout(resolve, 5))
      samples.push(performance.now() - startedAt)
      await stack.client.composers.archiveBackgroundComposer({ bcId: agent.bcId })
    }
  } finally {
    await stack.close()
    repository.remove()
  }
  return [
    {
      name: 'stop to everything dead, p95',
      unit: 'ms',
      ours: percentile(samples, 0.95),
      limit: 5000,
      runs: samples.length,
    },
  ]
}

/** Processes of this machine whose command line has the marker. */
function alive(marker: string): number {
  let count = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(marker)) count += 1
    } catch {
      // It has just ended.
    }
  }
  return count
}
