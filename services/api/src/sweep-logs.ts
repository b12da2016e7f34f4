import { sealLogs } from '@tutti/store'
import type { ApiDeps } from './api-deps.ts'

/** A log that nothing was added to for so long is at rest, as a rule: an agent that thinks for seconds shall not leave a segment each time. In milliseconds. */
const stillMs = 10_000
export const logSweepMs = 2000

/** Seals what logs have that is not in the archive yet; what fails is logged and tried again next time. */
export function sweepLogs(deps: ApiDeps, signal: AbortSignal): Promise<number> {
  const onFailure = (log: string, err: unknown) => {
    if (!signal.aborted) deps.log.warn({ run_log: log, err }, 'the log could not be archived yet')
  }
  return sealLogs(deps, stillMs, onFailure, signal)
}
