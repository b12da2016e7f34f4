import type { ActivityLog, HostSession, Sessions } from '@tutti/activities'
import type { Catalog } from '@tutti/store'

export interface EndReplacedDeps {
  readonly sessions: Sessions
  readonly endSession: (session: HostSession) => Promise<void>
  readonly catalog: Catalog
  readonly log: ActivityLog
}

/** A host that was frozen for long is told by nobody that its agents went on without it. One that cannot be ended does not keep the others. */
export async function endReplaced(
  { sessions, endSession, catalog, log }: EndReplacedDeps,
  signal: AbortSignal,
): Promise<void> {
  for (const session of sessions.all()) {
    const { bcId, owner, incarnation } = session
    try {
      const newest = await catalog.agents.get(owner, bcId, signal)
      if (newest.incarnation <= incarnation) continue
      await endSession(session)
      log.info({ bc_id: bcId, incarnation }, 'ended a sandbox that was replaced elsewhere')
    } catch (error) {
      if (signal.aborted) return
      log.warn({ err: error, bc_id: bcId, incarnation }, 'a sandbox that may be replaced could not be ended')
    }
  }
}
