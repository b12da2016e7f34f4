import { isAtRest, type AgentId, type AgentStatus } from '@tutti/core'

import type { HandlerDeps } from './handler.ts'

/**
 * Whether a reader that has everything up to `position` has seen the status that leaves no turn to run (design §7).
 *
 * @param status the newest one that the reader has seen; undefined when it began behind the last one.
 */
export async function agentStreamHasEnded(
  { catalog, pendingTurns }: Pick<HandlerDeps, 'catalog' | 'pendingTurns'>,
  {
    owner,
    bcId,
    status,
    position,
  }: { owner: string; bcId: AgentId; status: AgentStatus | undefined; position: number },
  signal: AbortSignal,
): Promise<boolean> {
  if (status !== undefined && !isAtRest({ status })) return false
  const row = await catalog.agents.get(owner, bcId, signal)
  if (pendingTurns.has(bcId, row.logSequence)) return false
  // The catalog may have gone on since the reader read: what it knows more is still to come.
  if (row.logSequence > position) return false
  return status !== undefined || isAtRest(row.state)
}
