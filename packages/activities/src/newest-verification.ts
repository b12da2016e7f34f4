import type { CheckResult, EnsembleId } from '@tutti/core'
import { decodeRunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'

/** How the check went on this combined commit; undefined when there was none. */
export async function newestVerification(
  eventLog: EventLog,
  ensembleId: EnsembleId,
  commit: string,
  signal: AbortSignal,
): Promise<CheckResult | undefined> {
  const { records } = await eventLog.read(ensembleId, 0, { types: ['verified'] }, signal)
  const events = records.map(decodeRunEvent)
  const found = events.findLast((event) => event.type === 'verified' && event.commit === commit)
  return found?.type === 'verified' ? found.result : undefined
}
