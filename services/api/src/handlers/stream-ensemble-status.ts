import { clone, create } from '@bufbuild/protobuf'
import {
  ParallelAgentWorkflowStatusUpdateSchema,
  type ParallelAgentWorkflowStatusUpdate,
  type StreamParallelAgentWorkflowStatusRequest,
} from '@tutti/proto'
import { encodeOffset } from '@tutti/protocol'
import { foldEnsembleStatus, hasEnded, initialEnsembleStatus } from '@tutti/protocol/wire'

import { callerOf } from '../call-context.ts'
import { ensembleIdOf } from '../ensemble-views.ts'
import { followLog, startPosition } from '../follow-log.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { childRows } from '../start-workflows.ts'
import { watchRow } from '../watch-row.ts'

/**
 * `StreamParallelAgentWorkflowStatus`: each update is the whole state after one event of the ensemble's log that changed it. With an
 * offset the log before it is folded in silence, so that an update never depends on where the reader began.
 */
export function createStreamEnsembleStatus(deps: HandlerDeps) {
  const { catalog, eventLog, recordViews, config, metrics } = deps

  return async function* (
    request: StreamParallelAgentWorkflowStatusRequest,
    context: CallContext,
  ): AsyncGenerator<ParallelAgentWorkflowStatusUpdate> {
    const { signal } = context
    const { owner } = callerOf(context)
    const ensembleId = ensembleIdOf(request.ensembleId)
    const { reached } = await watchRow(deps, () => catalog.ensembles.get(owner, ensembleId, signal), signal)
    const from = await startPosition(eventLog, ensembleId, request.offsetKey, signal)
    const children = await childRows(deps, owner, ensembleId, signal)
    const left = metrics.readerOpened('ensemble_status')
    try {
      let status = initialEnsembleStatus(
        ensembleId,
        children.map(({ bcId, agentSpec }) => ({ bcId, agent: shortSpec(agentSpec) })),
      )
      let offsetKey = encodeOffset(ensembleId, from)
      if (request.offsetKey === undefined) yield at(status, offsetKey, 0)
      for await (const step of followLog(deps.reads, ensembleId, 0, config['stream.heartbeat'], signal)) {
        for (const record of step.records) {
          const { event, offset } = recordViews.of(ensembleId, record)
          const before = status
          status = foldEnsembleStatus(before, event, record.at)
          if (status === before || record.sequence <= from) continue
          offsetKey = offset
          if (hasEnded(status) && !hasEnded(before)) await reached(record.sequence)
          yield at(status, offsetKey, record.at)
        }
        if (step.idle)
          yield create(ParallelAgentWorkflowStatusUpdateSchema, { ensembleId, offsetKey, heartbeat: true })
        if (step.closed || (step.atHead && hasEnded(status))) return
      }
    } finally {
      left()
    }
  }
}

const at = (
  status: ParallelAgentWorkflowStatusUpdate,
  offsetKey: string,
  storedAt: number,
): ParallelAgentWorkflowStatusUpdate => {
  const update = clone(ParallelAgentWorkflowStatusUpdateSchema, status)
  update.offsetKey = offsetKey
  update.atMs = BigInt(storedAt)
  return update
}

const specChars = 60
const shortSpec = (spec: string) =>
  spec.length <= specChars ? spec : `${spec.slice(0, specChars - 1).toWellFormed()}…`
