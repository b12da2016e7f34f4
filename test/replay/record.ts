/**
 * Records the histories that replay.test.ts replays: `npm run replay:record -- v0.2 [scenario…]`. Run it for a new version,
 * before its first release; recorded ones of a released version are never changed, since runs of that version may still be open.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import { describeTemporal, findTemporalServer } from '@tutti/temporal-binary'
import { startTemporal } from '../integration/workflows/world.ts'
import { scenarios } from './scenarios.ts'

const [version, ...names] = process.argv.slice(2)
if (!version || !/^v\d+\.\d+$/.test(version))
  throw new Error('Which version? For example: npm run replay:record -- v0.2')
const server = await findTemporalServer({ env: { ...process.env, TEMPORAL_ADDRESS: undefined } })
if (server.kind !== 'binary') throw new Error(describeTemporal(server))

/** Stack traces name this checkout, as a path and as a URL. */
const ownFolder = new RegExp(`(file://)?${RegExp.escape(join(import.meta.dirname, '../..'))}/`, 'g')
const folder = join(import.meta.dirname, 'histories', version)
await mkdir(folder, { recursive: true })
const temporal = await startTemporal(server.path)
try {
  for (const [name, scenario] of Object.entries(scenarios)) {
    if (names.length > 0 && !names.includes(name)) continue
    const kept = await temporal.run(scenario)
    for (const [index, { workflowId, runId }] of kept.entries()) {
      const history = await temporal.env.client.workflow.getHandle(workflowId, runId).fetchHistory()
      const path = join(folder, `${name}${index > 0 ? `-${index + 1}` : ''}.json`)
      await writeFile(path, `${JSON.stringify(withoutMachine(historyToJSON(history)), undefined, 1)}\n`)
      process.stderr.write(`${path}\n`)
    }
  }
} finally {
  await temporal.close()
}

/** Who ran it, and in which folder, says nothing about the workflow. */
function withoutMachine(history: string): unknown {
  return JSON.parse(history, (key, value: unknown) => {
    if (key === 'identity' || key === 'binaryChecksum' || key === 'buildId') return 'recorder'
    return typeof value === 'string' ? value.replaceAll(ownFolder, '') : value
  })
}
