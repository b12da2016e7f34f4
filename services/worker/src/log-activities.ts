import { AsyncLocalStorage } from 'node:async_hooks'
import type { ActivityLog } from '@tutti/activities'
import { activityFields } from './activity-fields.ts'
import { failureWord, type ActivityObserver } from './observe-activities.ts'

/** So many for each turn that they would hide the rest; they are logged when they fail. */
const quiet = new Set(['recordState', 'recordPhase', 'releaseLease'])

export interface ActivityLogging {
  /** Says who it is about in every line that is written while an activity runs. */
  readonly log: ActivityLog
  readonly observe: ActivityObserver
}

/** Log lines with the fields of the activity that they come from, and a line for the end of each activity. */
export function logActivities(base: ActivityLog, monotonic: () => number): ActivityLogging {
  const fields = new AsyncLocalStorage<Readonly<Record<string, string | number>>>()
  const log: ActivityLog = {
    info: (more, message) => base.info({ ...fields.getStore(), ...more }, message),
    warn: (more, message) => base.warn({ ...fields.getStore(), ...more }, message),
  }
  return {
    log,
    observe: (call, run) =>
      fields.run(activityFields(call), async () => {
        const startedAt = monotonic()
        const seen = () => ({
          activity: call.type,
          attempt: call.attempt,
          ms: Math.round(monotonic() - startedAt),
        })
        try {
          const result = await run()
          if (!quiet.has(call.type)) log.info({ ...seen(), ...reasonOf(result) }, 'activity ended')
          return result
        } catch (thrown) {
          const reason = failureWord(thrown)
          // The message only of what nobody expected: others may end with what a program of the agent has printed.
          const unexpected = reason === 'internal' ? { err: thrown } : {}
          if (reason === 'cancelled') log.info({ ...seen(), reason }, 'activity cancelled')
          else log.warn({ ...seen(), reason, ...unexpected }, 'activity failed')
          throw thrown
        }
      }),
  }
}

function reasonOf(result: unknown): { readonly reason?: unknown } {
  return typeof result === 'object' && result !== null && 'reason' in result ? { reason: result.reason } : {}
}
