import type { ActivityLog, HostSession, Sessions } from '@tutti/activities'
import { removeAbandonedEgress } from '@tutti/agent-server'
import type { AgentId, Clock } from '@tutti/core'
import type { HostSandboxProvider } from '@tutti/sandbox'
import type { Catalog } from '@tutti/store'

export interface ReaperDeps {
  readonly sandboxes: HostSandboxProvider
  readonly sessions: Sessions
  readonly endSession: (session: HostSession) => Promise<void>
  readonly catalog: Catalog
  readonly host: string
  readonly clock: Clock
  readonly log: ActivityLog
}

/**
 * How often the reaper looks, in milliseconds. Nothing waits for it, but a host that wakes up with a sandbox that was replaced meanwhile
 * has ended it within 30 s.
 */
const intervalMs = 15_000

/**
 * Removes what nobody owns, outside every workflow (design §5): sandboxes and egress proxies whose process is dead, sandboxes of ours whose
 * agent has a newer one elsewhere, and slots of agents that are at rest and have no sandbox here. The first sweep is done when this resolves.
 */
export async function startReaper(deps: ReaperDeps): Promise<{ stop(): Promise<void> }> {
  const controller = new AbortController()
  const { signal } = controller
  await sweep(deps, signal)
  const loop = (async () => {
    for (;;) {
      await deps.clock.sleep(intervalMs, signal)
      await sweep(deps, signal)
    }
  })().catch(() => undefined)
  return {
    async stop() {
      controller.abort()
      await loop
    },
  }
}

async function sweep(deps: ReaperDeps, signal: AbortSignal): Promise<void> {
  const { sandboxes, sessions, catalog, host, log } = deps
  try {
    await endReplaced(deps, signal)
    const ended = await sandboxes.reap(signal)
    if (ended.length > 0)
      log.info({ sandboxes: ended.map(({ key }) => key) }, 'ended sandboxes of a dead process')
    await removeAbandonedEgress()
    for (const lease of await catalog.leases.list(host, signal)) {
      if (lease.kind !== 'agent' || sessions.find(lease.holder as AgentId)) continue
      const { state } = await catalog.agents.get(lease.owner, lease.holder as AgentId, signal)
      const busy = state.status === 'RUNNING' || state.status === 'UNSPECIFIED'
      if (busy) continue
      await catalog.leases.release(host, lease.holder, signal)
      log.info({ bc_id: lease.holder }, 'gave back the slot of an agent at rest')
    }
  } catch (error) {
    if (!signal.aborted) log.warn({ err: error }, 'a sweep failed')
  }
}

/** A host that was frozen for long is told by nobody that its agents went on without it. */
async function endReplaced(
  { sessions, endSession, catalog, log }: ReaperDeps,
  signal: AbortSignal,
): Promise<void> {
  for (const session of sessions.all()) {
    const { bcId, owner, incarnation } = session
    const newest = await catalog.agents.get(owner, bcId, signal)
    if (newest.incarnation <= incarnation) continue
    await endSession(session)
    log.info({ bc_id: bcId, incarnation }, 'ended a sandbox that was replaced elsewhere')
  }
}
