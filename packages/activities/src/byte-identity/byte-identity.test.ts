import { expect, test } from 'vitest'
import { liveThrough } from './life.ts'
import { liveMany } from './live-many.ts'

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
  },
)
