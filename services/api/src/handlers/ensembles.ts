import { isEnsembleEnd, type AgentConfig, type EnsembleConfig } from '@tutti/core'
import type { GetEnsembleRequest, ListEnsemblesRequest, StopEnsembleRequest } from '@tutti/proto'
import type { EnsembleResult } from '@tutti/protocol'
import { phaseToWire } from '@tutti/protocol/wire'
import type { EnsembleRow } from '@tutti/store'

import { callerOf } from '../call-context.ts'
import { cancelTurn } from '../commands.ts'
import { readEnsembleProgress } from '../ensemble-progress.ts'
import { ensembleIdOf, toEnsemble, toListedEnsemble } from '../ensemble-views.ts'
import { filledPage } from '../filled-page.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { requestIdOf } from '../new-id.ts'
import { createParts } from '../read-parts.ts'
import { childRows, startEnsembleRow } from '../start-workflows.ts'

/** `tutti.v1.EnsembleService` without its stream. */
export function createEnsembles(deps: HandlerDeps) {
  const { catalog, eventLog, jsonBlobs, temporal } = deps

  return {
    async getEnsemble(request: GetEnsembleRequest, context: CallContext) {
      const { signal } = context
      const { owner } = callerOf(context)
      const row = await catalog.ensembles.get(owner, ensembleIdOf(request.ensembleId), signal)
      const children = await childRows(deps, owner, row.ensembleId, signal)
      const { resultBlobId } = row
      const parts = createParts()
      const config = await parts.read('Its settings', jsonBlobs.get<EnsembleConfig>(row.configBlobId, signal))
      const [prompt, progress, recorded, result, ...childConfigs] = await Promise.all([
        config && parts.read('Its prompt', jsonBlobs.getText(config.promptBlobId, signal)),
        readEnsembleProgress(eventLog, row.ensembleId, signal),
        catalog.attempts.list(row.ensembleId, signal),
        resultBlobId && parts.read('Its result', jsonBlobs.get<EnsembleResult>(resultBlobId, signal)),
        ...children.map(({ configBlobId }) =>
          parts.read("Its agents' settings", jsonBlobs.get<AgentConfig>(configBlobId, signal)),
        ),
      ])
      return {
        ensemble: toEnsemble({
          row,
          children,
          config,
          childConfigs,
          prompt,
          progress,
          recorded,
          missing: parts.missing(),
          ...(result ? { result } : {}),
        }),
      }
    },

    async listEnsembles(request: ListEnsemblesRequest, context: CallContext) {
      const { owner } = callerOf(context)
      const page = await filledPage(
        request,
        (wanted) => catalog.ensembles.list(owner, wanted, context.signal),
        ({ phase }) => !request.runningOnly || !isEnsembleEnd(phase),
      )
      return { ensembles: page.items.map(toListedEnsemble), nextPageToken: page.nextPageToken }
    },

    async stopEnsemble(request: StopEnsembleRequest, context: CallContext) {
      const { signal } = context
      const { owner } = callerOf(context)
      const ensembleId = ensembleIdOf(request.ensembleId)
      const row = await catalog.ensembles.get(owner, ensembleId, signal)
      if (!isEnsembleEnd(row.phase)) {
        // There must be a workflow to tell; one that was stored and not started would start later.
        if (row.starting) await startEnsembleRow(deps, row, signal)
        const requestId = requestIdOf(owner, '')
        await temporal.stopEnsemble(ensembleId, requestId, signal)
        await cancelChildren(row, requestId, signal)
      }
      const now = await catalog.ensembles.get(owner, ensembleId, signal)
      return {
        phase: phaseToWire(now.phase),
        reason: now.reason ?? (isEnsembleEnd(now.phase) ? '' : 'stopped_by_user'),
      }
    },
  }

  /** Running turns hear it at once; the rest is the workflow's. */
  async function cancelChildren(row: EnsembleRow, requestId: string, signal: AbortSignal): Promise<void> {
    const children = await childRows(deps, row.owner, row.ensembleId, signal)
    await Promise.all(
      children.map(async ({ bcId, state: { current } }) => {
        if (!current) return
        const turn = {
          bcId,
          turnId: current.turnId,
          commandId: requestId,
          reason: 'stopped_by_user',
        } as const
        await cancelTurn(deps, turn, signal)
      }),
    )
  }
}
