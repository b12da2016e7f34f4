import type { ApiDeps } from './api-deps.ts'
import { commandAgent } from './commands.ts'
import { createJsonBlobs } from './json-blobs.ts'
import { requestIdOf } from './new-id.ts'

/** Agents of one sweep: what is left is the next one's. */
const batch = 100

/**
 * Expires agents that nothing has happened to for the setting `agent.retention` (design §4, §11.4): their uncommitted files are
 * kept no longer. Returns how many it expired; what fails is logged and tried again next time.
 */
export async function sweepExpired(deps: ApiDeps, signal: AbortSignal): Promise<number> {
  const { catalog, clock, log, blobs, config } = deps
  const giving = { ...deps, jsonBlobs: createJsonBlobs({ blobs, blobRefs: catalog.blobRefs }) }
  const before = clock.now() - config['agent.retention']
  let expired = 0
  for (const { owner, bcId } of await catalog.agents.listInactive(before, batch, signal)) {
    const call = { owner, bcId, requestId: requestIdOf(owner, ''), command: { type: 'expire' } } as const
    try {
      await commandAgent(giving, call, signal)
      expired += 1
      log.info({ bc_id: bcId }, 'expired')
    } catch (err) {
      if (signal.aborted) return expired
      log.warn({ bc_id: bcId, err }, 'the agent could not be expired yet')
    }
  }
  return expired
}

/** A retention of days does not need more; a short one must not be overrun by much. */
export const expirySweepMs = (retentionMs: number): number => Math.min(60_000, Math.max(500, retentionMs / 2))
