import type { ActivityLog, Sessions } from '@tutti/activities'
import { removeAbandonedEgress } from '@tutti/agent-server'
import type { AgentId, Clock } from '@tutti/core'
import type { LocalSandboxProvider } from '@tutti/sandbox'
import type { Catalog } from '@tutti/store'

export interface ReaperDeps {
  readonly sandboxes: LocalSandboxProvider
  readonly sessions: Sessions
  readonly catalog: Catalog
  readonly host: string
  readonly clock: Clock
  readonly log: ActivityLog
}

/** How often the reaper looks, in milliseconds: nothing waits for it, it only ends what everybody else has forgotten. */
const intervalMs = 30_000

/**
 * Removes what nobody owns, outside every workflow (design §5): sandboxes and egress proxies whose process is dead, and slots of
 * agents that are at rest and have no sandbox here. The first sweep is done when this resolves.
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

async function sweep(
  { sandboxes, sessions, catalog, host, log }: ReaperDeps,
  signal: AbortSignal,
): Promise<void> {
  try {
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
