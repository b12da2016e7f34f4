import type { ApiDeps } from './api-deps.ts'
import { createJsonBlobs } from './json-blobs.ts'
import { startAgentRow, startEnsembleRow } from './start-workflows.ts'

/** A request that is still at it is given this long before the sweep does its work (design §3). */
const givenMs = 5000
export const startSweepMs = 2000

/**
 * Starts what was stored but not started: its process died in between, or Temporal did not answer. Returns how many workflows it
 * started; what fails is logged and tried again next time.
 */
export async function sweepStarting(deps: ApiDeps, signal: AbortSignal): Promise<number> {
  const { catalog, clock, log, blobs } = deps
  const starting = { ...deps, jsonBlobs: createJsonBlobs({ blobs, blobRefs: catalog.blobRefs }) }
  const before = clock.now() - givenMs
  const ensembles = await catalog.ensembles.listStarting(before, signal)
  const agents = await catalog.agents.listStarting(before, signal)
  const starts = [
    ...ensembles.map((row) => ({ id: row.ensembleId, start: () => startEnsembleRow(starting, row, signal) })),
    // Children are started by their parent.
    ...agents
      .filter(({ ensembleId }) => !ensembleId)
      .map((row) => ({ id: row.bcId, start: () => startAgentRow(starting, row, signal) })),
  ]
  let started = 0
  for (const { id, start } of starts) {
    try {
      await start()
      started += 1
      log.info({ id }, 'started by the sweep')
    } catch (err) {
      if (signal.aborted) return started
      log.warn({ id, err }, 'the sweep could not start it yet')
    }
  }
  return started
}
