import { createTestHost, runInside } from '@tutti/activities/test-host'
import type { Measurement } from './measurement.ts'
import { median } from './statistics.ts'

const files = 5000
const seconds = 60
const captureIntervalMs = 2000

const pauses = seconds * 4

/**
 * Writes so many files with pauses of the same length between them, as an agent thinks between its steps: what slows the writing down, or keeps
 * the program from going on, makes its turn longer. Says how long all of it took, and how long the writing did.
 */
const program = [
  'const fs = require("fs"); let busy = 0; let at = 0; const start = performance.now();',
  `const step = () => { const from = performance.now(); for (let n = 0; n < ${files / pauses} && at < ${files}; n++) { const folder = "out/" + Math.floor(at / 100); fs.mkdirSync(folder, { recursive: true }); fs.writeFileSync(folder + "/" + at, String(at).repeat(300)); at++ } busy += performance.now() - from;`,
  `if (at < ${files}) setTimeout(step, ${(seconds * 1000) / pauses}); else console.log(JSON.stringify({ took: performance.now() - start, busy })) };`,
  'step()',
].join(' ')

interface Turn {
  /** Milliseconds from its first file to its last. */
  readonly took: number
  /** Of them, those in which it wrote. */
  readonly busy: number
  /** Of the capture after it. */
  readonly flush: number
}

/** A turn that writes 5,000 files over 60 s, with captures beside it and without, by turns; the last capture by itself. */
export async function measureCaptureCost(runs: number): Promise<Measurement[]> {
  const without: Turn[] = []
  const captured: Turn[] = []
  for (let run = 0; run < runs; run += 1) {
    without.push(await write(false))
    captured.push(await write(true))
  }
  const [ours, baseline] = [captured, without].map((turns) => ({
    took: median(turns.map(({ took }) => took)),
    busy: median(turns.map(({ busy }) => busy)),
    flush: median(turns.map(({ flush }) => flush)),
  })) as [Turn, Turn]
  return [
    {
      name: `a turn that writes ${files} files over ${seconds} s`,
      unit: 'ms',
      ours: ours.took,
      baseline: baseline.took,
      limit: 1.05,
      runs,
    },
    { name: 'of it, the writing itself', unit: 'ms', ours: ours.busy, baseline: baseline.busy, runs },
    { name: 'its last capture', unit: 'ms', ours: ours.flush, limit: 5000, runs },
  ]
}

async function write(isCaptured: boolean): Promise<Turn> {
  const host = await createTestHost({ files: { 'README.md': 'bench\n' }, watchWorkspace: isCaptured })
  try {
    const session = await host.provision(1)
    const timer = setInterval(() => {
      if (isCaptured) void session.workspace.capture(session.controller.signal)
    }, captureIntervalMs)
    const said = await runInside(session, `node -e '${program}'`)
    const { took, busy } = JSON.parse(said) as Omit<Turn, 'flush'>
    clearInterval(timer)
    const from = performance.now()
    await session.workspace.capture(session.controller.signal)
    return { took, busy, flush: performance.now() - from }
  } finally {
    await host.remove()
  }
}
