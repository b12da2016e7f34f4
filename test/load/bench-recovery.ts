import { parseArgs } from 'node:util'
import { measureCheckpoint } from './measure-checkpoint.ts'
import { measureCaptureCost } from './measure-capture-cost.ts'
import { measurePuts } from './measure-puts.ts'
import { measureRecovery } from './measure-recovery.ts'
import { measureSync } from './measure-sync.ts'
import { holds, table, type Measurement } from './measurement.ts'

const sections = {
  recovery: measureRecovery,
  checkpoint: measureCheckpoint,
  capture: measureCaptureCost,
  puts: measurePuts,
  sync: measureSync,
}

const { values, positionals } = parseArgs({
  options: { runs: { type: 'string', default: '5' } },
  allowPositionals: true,
})
const asked = positionals.length > 0 ? positionals : Object.keys(sections)

const measured: Measurement[] = []
for (const name of asked) {
  const measure = sections[name as keyof typeof sections]
  if (!measure) throw new Error(`There is no section ${name}; there are ${Object.keys(sections).join(', ')}.`)
  process.stderr.write(`measuring ${name}…\n`)
  measured.push(...(await measure(Number(values.runs))))
}
process.stdout.write(`${table(measured)}\n`)
process.exitCode = measured.every(holds) ? 0 : 1
