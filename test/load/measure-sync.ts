import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunEvent } from '@tutti/protocol'
import { createTestRepository } from '@tutti/testkit'
import { startAgent } from '../cases/agent-driver.ts'
import { connect } from '../cases/connect.ts'
import { script } from '../cases/script.ts'
import { createBenchTutti } from './bench-stack.ts'
import { manyFiles, pathOf } from './many-files.ts'
import type { Measurement } from './measurement.ts'
import { percentile } from './statistics.ts'

const files = 10_000
/** Between two saves, in milliseconds: as a person or a model saves, and longer than what follows from one. */
const pauseMs = 700

/**
 * A file that a program of the agent's saves in a workspace of 10,000, until a folder that `tutti sync` keeps in step has it. The program writes
 * the time into the file, so nothing but the save and the look at the folder is in it.
 */
export async function measureSync(runs: number): Promise<Measurement[]> {
  const tutti = await createBenchTutti({})
  const parent = mkdtempSync(join(tmpdir(), 'tutti-bench-sync-'))
  const folder = join(parent, 'work')
  const repository = createTestRepository(manyFiles(files))
  try {
    await tutti.start()
    const client = connect(tutti)
    const saves = runs * 6
    const agent = await startAgent(client, {
      prompt: script('run: true'),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.rest()
    const once = await tutti.run(['sync', agent.bcId, folder, '--once'])
    if (once.code !== 0) throw new Error(once.stderr)
    const sync = tutti.cli(['sync', agent.bcId, folder])
    const program = [
      `const fs = require("fs"); let at = 0`,
      `const save = () => { fs.writeFileSync("folder-" + at + "/file-0.txt", String(Date.now())); if (++at < ${saves}) setTimeout(save, ${pauseMs}) }`,
      `setTimeout(save, ${2 * pauseMs})`,
    ].join('; ')
    await agent.followUp(script(`run: node -e '${program}'`))
    const seenAt: Save[] = []
    for (let save = 0; save < saves; save += 1) seenAt.push(await seen(join(folder, pathOf(save * 100))))
    const samples = seenAt.map(({ savedAt, at }) => at - savedAt)
    await agent.rest()
    sync.process.kill('SIGTERM')
    await sync.done
    const loggedAt = new Map<string, number>()
    for await (const { eventJson, atMs } of client.agents.streamAgentEvents({ bcId: agent.bcId })) {
      const event = eventJson === '' ? undefined : (JSON.parse(eventJson) as RunEvent)
      if (event?.type === 'file_change') loggedAt.set(event.path, Number(atMs))
    }
    const logged = seenAt.map(({ savedAt }, save) => loggedAt.get(pathOf(save * 100))! - savedAt)
    const half = `${percentile(logged, 0.5)} ms (p50) and ${percentile(logged, 0.95)} ms (p95)`
    process.stderr.write(`of the way of a saved file, ${half} to the log\n`)
    const of = (p: number, limit: number): Measurement => ({
      name: `one saved file in ${files}, to visible in another folder, p${p * 100}`,
      unit: 'ms',
      ours: percentile(samples, p),
      limit,
      runs: samples.length,
    })
    return [of(0.5, 150), of(0.95, 400)]
  } finally {
    await tutti.remove()
    repository.remove()
    rmSync(parent, { recursive: true, force: true })
  }
}

/** In milliseconds since the epoch. */
interface Save {
  readonly savedAt: number
  readonly at: number
}

/** Resolves when the file has what was saved. */
async function seen(path: string): Promise<Save> {
  for (;;) {
    const text = readFileSync(path, 'utf8')
    if (/^\d+$/.test(text)) return { savedAt: Number(text), at: Date.now() }
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
