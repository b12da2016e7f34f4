import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, Connection } from '@temporalio/client'
import { findTemporalServer } from '@tutti/temporal-binary'
import { createTuttiClient, type TuttiClient } from '@tutti/client'
import { createTuttiStack, type TuttiStack } from '@tutti/testkit'
import { memoryArguments, memoryEnvironment } from '../../scripts/setup/memory.mjs'

/** Tutti and the baseline's worker beside each other on one Temporal server. */
export interface BenchStack {
  readonly tutti: TuttiStack
  readonly client: TuttiClient
  readonly temporal: Client
  /** A folder for this run's repositories. */
  readonly folder: string
  close(): Promise<void>
}

export async function startBenchStack(env: Readonly<Record<string, string>>): Promise<BenchStack> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-bench-'))
  const tutti = await createBenchTutti(env)
  const ready = await tutti.start()
  const key = readFileSync(join(tutti.dataDir, 'local-key'), 'utf8').trim()
  const connection = await Connection.connect({ address: ready.temporal_address })
  const bare = await startBareWorker(ready.temporal_address)
  return {
    tutti,
    client: createTuttiClient({ address: ready.address, key }),
    temporal: new Client({ connection }),
    folder,
    async close() {
      bare.kill('SIGTERM')
      await once(bare, 'close')
      await connection.close()
      await tutti.remove()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A stack that runs as `npx tutti` runs it. */
export async function createBenchTutti(env: Readonly<Record<string, string>>): Promise<TuttiStack> {
  const found = await findTemporalServer({ env: { ...process.env, TEMPORAL_ADDRESS: undefined } })
  if (found.kind !== 'binary') throw new Error('The benchmark needs a Temporal server of its own.')
  return createTuttiStack({
    temporalPath: found.path,
    env: { ...memoryEnvironment, ...env },
    nodeArguments: memoryArguments,
  })
}

async function startBareWorker(address: string): Promise<ChildProcess> {
  const path = fileURLToPath(new URL('./bare-worker.ts', import.meta.url))
  const child = spawn(process.execPath, [path, address], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return child
}

/** Resident memory of a process in MB. */
export function residentMegabytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1]) / 1024
}
