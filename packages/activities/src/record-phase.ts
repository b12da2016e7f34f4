import { isEnsembleEnd, type BlobId } from '@tutti/core'
import { encodeRunEvent } from '@tutti/protocol'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { makeEnsembleResult } from './ensemble-result.ts'
import { orFail } from './fail.ts'
import { createOwnedBlobs } from './owned-blobs.ts'

/** Appends a phase and projects it; with the last one the result is made first, so that whoever reads the end finds it. */
export function createRecordPhase(deps: ActivityDeps, configs: ConfigBlobs): Activities['recordPhase'] {
  return (input) =>
    orFail(async () => {
      const { signal } = new AbortController()
      const { ensembleId, phase, reason, detail } = input
      const resultBlobId = isEnsembleEnd(phase) ? await storeResult(deps, configs, input, signal) : undefined
      const producer = { id: `workflow/${input.runId}`, epoch: 0, sequence: input.sequence }
      const event = { type: 'phase', phase, ...(reason && { reason }), ...(detail && { detail }) } as const
      const { last } = await deps.eventLog.append(ensembleId, producer, [encodeRunEvent(event)], signal)
      await deps.catalog.ensembles.project(
        ensembleId,
        { logSequence: last, phase, ...(reason && { reason }), ...(resultBlobId && { resultBlobId }) },
        signal,
      )
      if (isEnsembleEnd(phase)) await deps.eventLog.close(ensembleId, signal)
    })
}

async function storeResult(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  input: Parameters<Activities['recordPhase']>[0],
  signal: AbortSignal,
): Promise<BlobId> {
  const result = await makeEnsembleResult(deps, configs, input, signal)
  const { blobRefs } = deps.catalog
  const blobs = createOwnedBlobs(deps.blobs, (ids, adding) => blobRefs.add(input.owner, ids, adding))
  return blobs.put(new TextEncoder().encode(JSON.stringify(result)), signal)
}
