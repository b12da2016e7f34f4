import { captureNow, createTestHost, runInside } from '@tutti/activities/test-host'
import { manyFiles, rewriteFiles } from './many-files.ts'
import type { Measurement } from './measurement.ts'
import { median } from './statistics.ts'

const files = 50_000
const changed = 25

/** 25 captured changes among 50,000 files become a commit of the mirror and an event. The walk before it is no part of it. */
export async function measureCheckpoint(runs: number): Promise<Measurement[]> {
  const host = await createTestHost({
    files: manyFiles(files),
    limits: { files: 200_000, diskBytes: 2 ** 30 },
  })
  try {
    const session = await host.provision(1)
    const samples: number[] = []
    for (let run = 0; run < runs * 4; run += 1) {
      await runInside(session, "node -e '" + rewriteFiles(run * changed, (run + 1) * changed, run + 1) + "'")
      await captureNow(session)
      const from = performance.now()
      await session.workspace.checkpoint('turn-1', session.controller.signal)
      samples.push(performance.now() - from)
    }
    return [
      {
        name: `checkpoint of ${changed} changes in ${files} files, p50`,
        unit: 'ms',
        ours: median(samples),
        limit: 250,
        runs: samples.length,
      },
    ]
  } finally {
    await host.remove()
  }
}
