import type { AgentId, EnsembleId } from '@tutti/core'
import type { ParallelAgentWorkflowPhaseTime } from '@tutti/proto'
import { decodeRunEvent } from '@tutti/protocol'
import { foldEnsembleStatus, initialEnsembleStatus } from '@tutti/protocol/wire'
import type { EventLog } from '@tutti/store'
import { readRecords } from './read-records.ts'

/** What of an ensemble stands in its log alone. */
export interface EnsembleProgress {
  /** Every phase so far, with when it began. */
  readonly phases: readonly ParallelAgentWorkflowPhaseTime[]
  /** The children that wait for a sandbox, with their place in the queue. */
  readonly waiting: ReadonlyMap<AgentId, number>
}

export async function readEnsembleProgress(
  eventLog: EventLog,
  ensembleId: EnsembleId,
  signal: AbortSignal,
): Promise<EnsembleProgress> {
  let status = initialEnsembleStatus(ensembleId, [])
  const waiting = new Map<AgentId, number>()
  for await (const record of readRecords(eventLog, ensembleId, ['phase', 'child'], signal)) {
    const event = decodeRunEvent(record)
    // Children one by one: only the newest event of each counts, and there may be many.
    if (event.type !== 'child') status = foldEnsembleStatus(status, event, record.at)
    else if (event.child.queuePosition === undefined) waiting.delete(event.child.bcId)
    else waiting.set(event.child.bcId, event.child.queuePosition)
  }
  return { phases: status.phases, waiting }
}
