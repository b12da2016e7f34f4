import type { EnsembleId } from '@tutti/core'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'

/**
 * Shows something of a child in its ensemble's log, once per `producerId`. After the ensemble has ended its log is closed and the
 * child goes on alone, for example with a follow-up: then there is nothing to show.
 */
export async function appendToEnsemble(
  eventLog: EventLog,
  ensembleId: EnsembleId,
  producerId: string,
  event: RunEvent,
  signal: AbortSignal,
): Promise<void> {
  const once = { id: producerId, epoch: 0, sequence: 1 }
  try {
    await eventLog.append(ensembleId, once, [encodeRunEvent(event)], signal)
  } catch (error) {
    if (!(await eventLog.head(ensembleId, signal)).closed) throw error
  }
}
