import type { AgentId, EnsembleId } from '@tutti/core'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import type { Activities } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail } from './fail.ts'
import { withHeartbeat } from './heartbeat.ts'
import { slotPollMs } from './slot-poll.ts'

/**
 * Waits for a slot on this host (design §5: a durable lease gives the slot and the visible queue position). Idle agents that
 * hold slots are asked to give theirs up.
 */
export function createAdmit(deps: ActivityDeps): Activities['admit'] {
  const { catalog, clock, host, hostQueue, maxSandboxes, crashPoint } = deps
  return (input) =>
    orFail(() =>
      withHeartbeat(input.heartbeatMs, async (signal, phase) => {
        const request = { host, kind: 'agent', holder: input.bcId, slots: maxSandboxes } as const
        let shown = 0
        try {
          for (;;) {
            const { position } = await crashPoint('admit.lease', () =>
              catalog.leases.acquire({ ...request, now: clock.now() }, signal),
            )
            if (position !== shown) await show(deps, input, position, signal)
            if (position === 0) return { hostQueue }
            shown = position
            phase(`waiting, position ${position}`)
            if (position === 1) await askIdleHolders(deps, signal)
            // Those further back look less often.
            await clock.sleep(slotPollMs * Math.min(position, 8), signal)
          }
        } catch (error) {
          await catalog.leases.release(host, input.bcId, new AbortController().signal)
          throw error
        }
      }),
    )
}

/**
 * The position goes to the agent's log and to its ensemble's, so that both streams show it. 0, the end of a wait, goes to the ensemble's
 * alone: the agent's own has the sandbox that is made next.
 */
async function show(
  deps: ActivityDeps,
  input: {
    readonly bcId: AgentId
    readonly owner: string
    readonly incarnation: number
    readonly ensembleId?: EnsembleId
  },
  position: number,
  signal: AbortSignal,
): Promise<void> {
  const { bcId, incarnation, ensembleId } = input
  if (position > 0) {
    await append(
      deps,
      bcId,
      `queue/${deps.host}`,
      { type: 'sandbox', incarnation, state: 'waiting', position },
      signal,
    )
  }
  if (!ensembleId || (await deps.eventLog.head(ensembleId, signal)).closed) return
  const row = await deps.catalog.agents.get(input.owner, bcId, signal)
  const child = {
    bcId,
    index: row.childIndex ?? 0,
    agent: row.agentSpec,
    status: row.state.status,
    hadSandbox: row.hadSandbox,
    ...(position > 0 && { queuePosition: position }),
  }
  await append(deps, ensembleId, `queue/${deps.host}/${bcId}`, { type: 'child', child }, signal)
}

async function append(
  { eventLog }: ActivityDeps,
  log: AgentId | EnsembleId,
  producerId: string,
  event: RunEvent,
  signal: AbortSignal,
): Promise<void> {
  const sequence = await eventLog.expected(log, producerId, 0, signal)
  await eventLog.append(log, { id: producerId, epoch: 0, sequence }, [encodeRunEvent(event)], signal)
}

/** An idle sandbox is released as soon as another agent waits (design §5). */
async function askIdleHolders(
  { catalog, host, askToRelease, log }: ActivityDeps,
  signal: AbortSignal,
): Promise<void> {
  for (const lease of await catalog.leases.list(host, signal)) {
    if (lease.kind !== 'agent' || lease.grantedAt === undefined) continue
    const holder = await catalog.agents
      .get(lease.owner, lease.holder as AgentId, signal)
      .catch(() => undefined)
    if (
      !holder ||
      holder.ensembleId ||
      holder.state.status === 'RUNNING' ||
      holder.state.status === 'UNSPECIFIED'
    )
      continue
    await askToRelease(holder.bcId).catch((error: unknown) =>
      log.warn({ err: error, bc_id: holder.bcId }, 'could not ask an idle agent to release its sandbox'),
    )
  }
}
