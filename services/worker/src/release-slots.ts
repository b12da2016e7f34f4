import type { ActivityLog, Sessions } from '@tutti/activities'
import type { AgentId } from '@tutti/core'
import type { Catalog } from '@tutti/store'

export interface ReleaseSlotsDeps {
  readonly sessions: Sessions
  readonly catalog: Catalog
  readonly host: string
  readonly log: ActivityLog
}

/** Gives back the slots of agents that are at rest and have no sandbox here. */
export async function releaseSlots(
  { sessions, catalog, host, log }: ReleaseSlotsDeps,
  signal: AbortSignal,
): Promise<void> {
  for (const lease of await catalog.leases.list(host, signal)) {
    if (lease.kind !== 'agent' || sessions.find(lease.holder as AgentId)) continue
    const { state } = await catalog.agents.get(lease.owner, lease.holder as AgentId, signal)
    if (state.status === 'RUNNING' || state.status === 'UNSPECIFIED') continue
    await catalog.leases.release(host, lease.holder, signal)
    log.info({ bc_id: lease.holder }, 'gave back the slot of an agent at rest')
  }
}

/**
 * For a start: this process verifies nothing yet, so what stands there is of one that was killed. Its verification may go on at another
 * host, and nobody would ever give this host's slot back.
 */
export async function releaseVerifySlots(
  { catalog, host }: ReleaseSlotsDeps,
  signal: AbortSignal,
): Promise<void> {
  for (const lease of await catalog.leases.list(host, signal))
    if (lease.kind === 'verify') await catalog.leases.release(host, lease.holder, signal)
}
