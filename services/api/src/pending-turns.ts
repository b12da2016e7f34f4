import type { AgentId, Clock } from '@tutti/core'

/**
 * Agents whose workflow has accepted a turn that the catalog does not show yet. Without this a stream that is opened right after a
 * follow-up would see the old status at rest and end.
 */
export interface PendingTurns {
  /** A turn was accepted while the catalog stood at this position of the log. */
  add(bcId: AgentId, logSequence: number): void
  /** Whether a turn is still to be seen, given where the catalog stands now. */
  has(bcId: AgentId, logSequence: number): boolean
}

/** The message is in the log within moments; after this long something else is wrong, and streams may end. */
const keptMs = 30_000
const keptAgents = 10_000

export function createPendingTurns({ clock }: { clock: Clock }): PendingTurns {
  const pending = new Map<AgentId, { readonly logSequence: number; readonly until: number }>()
  return {
    add(bcId, logSequence) {
      if (pending.size >= keptAgents) pending.delete(pending.keys().next().value!)
      // Calls that run side by side have read the row at different moments.
      const newest = Math.max(logSequence, pending.get(bcId)?.logSequence ?? 0)
      pending.set(bcId, { logSequence: newest, until: clock.monotonic() + keptMs })
    },
    has(bcId, logSequence) {
      const accepted = pending.get(bcId)
      if (!accepted) return false
      if (logSequence <= accepted.logSequence && clock.monotonic() < accepted.until) return true
      pending.delete(bcId)
      return false
    },
  }
}
