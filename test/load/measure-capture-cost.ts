import { createTestHost, runInside } from '@tutti/activities/test-host'
import type { Measurement } from './measurement.ts'
import { median } from './statistics.ts'

const files = 5000
const seconds = 60
const captureIntervalMs = 2000

/** Writes so many files at a steady pace and says how long its own work took: what it waits between them is not counted. */
const program = [
  'const fs = require("fs"); fs.mkdirSync("out", { recursive: true });',
  'let busy = 0; let at = 0;',
  `const step = () => { const from = performance.now(); for (let n = 0; n < ${files / seconds / 4}; n++) { const folder = "out/" + Math.floor(at / 100); fs.mkdirSync(folder, { recursive: true }); fs.writeFileSync(folder + "/" + at, String(at).repeat(300)); at++ } busy += performance.now() - from;`,
  `if (at < ${files}) setTimeout(step, 250 - (performance.now() - from)); else console.log(Math.round(performance.now() - start)) };`,
  'const start = performance.now(); step()',
].join(' ')

/** A turn that writes 5,000 files over 60 s, with captures beside it and without; the last capture by itself. */
export async function measureCaptureCost(runs: number): Promise<Measurement[]> {
  const samples = { with: [] as number[], without: [] as number[], flush: [] as number[] }
  // A minute each: three are enough for a median.
  for (let run = 0; run < Math.min(runs, 3); run += 1) {
    samples.without.push((await write(false)).took)
    const { took, flush } = await write(true)
    samples.with.push(took)
    samples.flush.push(flush)
  }
  const rounds = samples.with.length
  return [
    {
      name: `a turn that writes ${files} files over ${seconds} s`,
      unit: 'ms',
      ours: median(samples.with),
      baseline: median(samples.without),
      limit: 1.05,
      runs: rounds,
    },
    { name: 'its last capture', unit: 'ms', ours: median(samples.flush), limit: 5000, runs: rounds },
  ]
}

async function write(isCaptured: boolean): Promise<{ took: number; flush: number }> {
  const host = await createTestHost({ files: { 'README.md': 'bench\n' }, watchWorkspace: isCaptured })
  try {
    const session = await host.provision(1)
    const timer = setInterval(() => {
      if (isCaptured) void session.workspace.capture(session.controller.signal)
    }, captureIntervalMs)
    const took = Number(await runInside(session, `node -e '${program}'`))
    clearInterval(timer)
    const from = performance.now()
    await session.workspace.capture(session.controller.signal)
    return { took, flush: performance.now() - from }
  } finally {
    await host.remove()
  }
}
