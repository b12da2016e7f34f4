import { mirrorRefs } from '@tutti/core'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { cancellationSignal } from './cancellation.ts'
import type { ConfigBlobs } from './config-blobs.ts'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { openEnsemble } from './ensemble-mirror.ts'
import { orFail } from './fail.ts'
import { createOwnedBlobs } from './owned-blobs.ts'

/** Folds the named attempts into one commit. The same request makes the same commit, so that a repeat changes nothing. */
export function createCombine(deps: ActivityDeps, configs: ConfigBlobs): Activities['combine'] {
  return (input) =>
    orFail(async () => {
      const signal = cancellationSignal()
      const { ensembleId } = input
      const { mirror, location, base } = await openEnsemble(deps, configs, input, signal)
      const row = await deps.catalog.ensembles.get(input.owner, ensembleId, signal)
      const attempts = new Map(
        (await deps.catalog.attempts.list(ensembleId, signal)).map((attempt) => [attempt.bcId, attempt]),
      )
      const commits = input.attempts.map((bcId) => attempts.get(bcId)!.commit)
      for (const commit of commits) await deps.mirrors.restore(location, commit, signal)
      const combined = await deps.crashPoint('ensemble.combine', () =>
        mirror.combine(
          {
            base,
            attempts: input.attempts.map((bcId, at) => ({ bcId, commit: commits[at]! })),
            ref: mirrorRefs.synthesis(ensembleId),
            message: `${row.title}\n\nCombined by Tutti from ${input.attempts.length === 1 ? 'one attempt' : `${input.attempts.length} attempts`} of ${ensembleId}.`,
            atMs: row.createdAt,
          },
          signal,
        ),
      )
      await mirror.keep({ commit: combined.commit, onto: base, base }, signal)
      const { blobRefs } = deps.catalog
      const blobs = createOwnedBlobs(deps.blobs, (ids, adding) => blobRefs.add(input.owner, ids, adding))
      const reportBlobId = await blobs.put(
        new TextEncoder().encode(JSON.stringify(combined.conflicts)),
        signal,
      )
      const event = {
        type: 'combined' as const,
        commit: combined.commit,
        included: [...input.attempts],
        leftOut: row.childIds.filter((bcId) => !input.attempts.includes(bcId)),
        conflicts: combined.conflicts.length,
      } satisfies RunEvent
      const once = { id: `combine/${input.attempts.length}/${combined.commit}`, epoch: 0, sequence: 1 }
      await deps.eventLog.append(ensembleId, once, [encodeRunEvent(event)], signal)
      return { commit: combined.commit, conflicts: combined.conflicts.length, reportBlobId }
    })
}
