import type { CheckResult, EnsembleId } from '@tutti/core'
import type { EventLog } from '@tutti/store'
import { readEvents } from '@tutti/workspace/log'

/** How the check went on this combined commit; undefined when there was none. */
export async function newestVerification(
  eventLog: EventLog,
  ensembleId: EnsembleId,
  commit: string,
  signal: AbortSignal,
): Promise<CheckResult | undefined> {
  let found: CheckResult | undefined
  for await (const { event } of readEvents(eventLog, ensembleId, ['verified'], signal)) {
    if (event.commit === commit) found = event.result
  }
  return found
}
