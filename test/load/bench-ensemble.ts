import { parseArgs } from 'node:util'
import { measureFanOut } from './measure-fan-out.ts'
import { measureFollowUp } from './measure-follow-up.ts'
import { measureIdle } from './measure-idle.ts'
import { measureRun } from './measure-run.ts'
import { measureStop } from './measure-stop.ts'
import { holds, table, type Measurement } from './measurement.ts'

const sections = {
  run: measureRun,
  'fan-out': measureFanOut,
  'follow-up': measureFollowUp,
  idle: measureIdle,
  stop: measureStop,
}

const { values, positionals } = parseArgs({
  options: { runs: { type: 'string', default: '5' } },
  allowPositionals: true,
})
const runs = Number(values.runs)
const asked = positionals.length > 0 ? positionals : Object.keys(sections)

const measured: Measurement[] = []
for (const name of asked) {
  const measure = sections[name as keyof typeof sections]
  if (!measure) throw new Error(`There is no section ${name}; there are ${Object.keys(sections).join(', ')}.`)
  process.stderr.write(`measuring ${name}…\n`)
  measured.push(...(await measure(runs)))
}
process.stdout.write(`${table(measured)}\n`)
process.exitCode = measured.every(holds) ? 0 : 1
