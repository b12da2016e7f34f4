import type { ActivityLog } from '@tutti/activities'
import { DefaultLogger, Runtime } from '@temporalio/worker'

let installed = false

/**
 * Sends what Temporal's SDK says to the server's own log, warnings and above. Once per process: its runtime is one, and the first
 * worker's log stays.
 */
export function logTemporal(log: ActivityLog): void {
  if (installed) return
  installed = true
  Runtime.install({
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      // The host's queue has no workflows, on purpose.
      if (message.startsWith('No workflows registered')) return
      // Each is a line of `logActivities`, with its reason and who it is about.
      if (message === 'Activity failed') return
      log.warn({ temporal_level: level, ...meta }, message)
    }),
    // SIGTERM and SIGINT are the composition root's business: it drains in its own order.
    shutdownSignals: [],
  })
}
