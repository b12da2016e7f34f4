import { expect, test } from 'vitest'
import { faultSteps } from './faulty-ports.ts'
import type { StruckFault } from './life-counts.ts'
import { liveThrough } from './life.ts'
import { liveMany } from './live-many.ts'
import { nestedShapes, repositoryShapes } from './repository-shapes.ts'
import { treeShapes } from './tree-shapes.ts'

const replayed = process.env['TUTTI_RECOVERY_SEED']
/** Always the same here, so that a change is to blame for a failure; the nightly command takes others. */
const seed = Number(replayed ?? 1000)
const recoveries = replayed === undefined ? 100 : 1

test(
  `what was captured comes back to the byte, ${recoveries} times from seed ${seed}`,
  { timeout: 600_000 },
  async () => {
    const wrong: string[] = []
    const lives = await liveMany({
      seed,
      recoveries,
      live: liveThrough,
      signal: new AbortController().signal,
      onFailure: (failed, { message }) =>
        wrong.push(`${message}\nRun it again with TUTTI_RECOVERY_SEED=${failed} in the environment.`),
    })
    expect(wrong.join('\n\n')).toBe('')
    expect(lives.recoveries).toBeGreaterThanOrEqual(recoveries)
    if (replayed !== undefined) return

    // What these seeds do, with room for what a clock decides: else nothing was wrong because nothing was done.
    const shapesOf = (all: object) => Object.keys(all).filter((name) => lives.shapes.has(name)).length
    expect(shapesOf({ ...treeShapes, ...nestedShapes })).toBeGreaterThanOrEqual(55)
    expect(shapesOf(repositoryShapes)).toBeGreaterThanOrEqual(35)
    expect(lives.edits).toBeGreaterThanOrEqual(250)
    expect(lives.compared).toBeGreaterThanOrEqual(75)
    expect(lives.cutOff).toBeGreaterThanOrEqual(15)
    const faults = (part: Partial<StruckFault>) =>
      lives.faults.filter((fault) =>
        Object.entries(part).every(([key, value]) => fault[key as 'step'] === value),
      ).length
    for (const step of faultSteps) expect(faults({ step }), step).toBeGreaterThanOrEqual(1)
    for (const when of ['before', 'after'] as const) expect(faults({ when }), when).toBeGreaterThanOrEqual(8)
    for (const kills of ['host', 'sandbox'] as const)
      expect(faults({ kills }), kills).toBeGreaterThanOrEqual(6)
    expect(faults({ during: 'saving' })).toBeGreaterThanOrEqual(12)
    expect(faults({ during: 'recovery' })).toBeGreaterThanOrEqual(4)
  },
)
