import { parseArgs } from 'node:util'
import { describeCounts } from './life-counts.ts'
import { liveThrough } from './life.ts'
import { liveMany } from './live-many.ts'

/** `npm run nightly:recovery`: thousands of recoveries. Exit code 1 when one was not identical, 130 when it was interrupted before its end. */
const { values } = parseArgs({
  options: {
    recoveries: { type: 'string', default: '2000' },
    seed: { type: 'string', default: process.env['TUTTI_RECOVERY_SEED'] ?? String(Date.now() % 1_000_000) },
    once: { type: 'boolean', default: process.env['TUTTI_RECOVERY_SEED'] !== undefined },
  },
})
const [seed, recoveries] = [Number(values.seed), Number(values.recoveries)]
if (![seed, recoveries].every(Number.isSafeInteger))
  throw new Error('--seed and --recoveries take whole numbers.')
const stop = new AbortController()
process.once('SIGINT', () => stop.abort())
process.once('SIGTERM', () => stop.abort())

const again = (failed: number) => `Run it again: TUTTI_RECOVERY_SEED=${failed} npm run nightly:recovery`
const say = (line: string) => console.log(line)
const start = performance.now()
say(`Seed ${seed}. ${values.once ? 'One agent' : `${recoveries} recoveries`}; Ctrl-C ends it.`)
const result = await liveMany({
  seed,
  recoveries: values.once ? 1 : recoveries,
  live: liveThrough,
  signal: stop.signal,
  onLife: (done) => say(`${done} recoveries, ${Math.round((performance.now() - start) / 1000)} s`),
  onFailure: (failed, error) => say(`${error.message}\n${again(failed)}\n`),
})
const failures = result.failed.length
if (failures > 0) {
  say(`${failures} agents did not get back what was captured. ${result.failed.map(again).join('\n')}`)
  process.exitCode = 1
} else if (stop.signal.aborted) {
  say(`Interrupted after ${result.recoveries} recoveries, none of which was wrong.`)
  process.exitCode = 130
} else say(`${result.recoveries} recoveries gave back what was captured.`)
if (result.recoveries > 0) say(describeCounts(result))
