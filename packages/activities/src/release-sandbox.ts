import { setImmediate } from 'node:timers/promises'
import type { Activities, AgentScope } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { orFail } from './fail.ts'
import { orKillSilent } from './kill-silent.ts'
import type { HostSession, Sessions } from './sessions.ts'

/** Ends a sandbox life and gives its slot back. Idempotent; a life that is not here any more only gives its slot back. */
export function createReleaseSandbox(deps: ActivityDeps, sessions: Sessions): Activities['releaseSandbox'] {
  return (input) =>
    orFail(async () => {
      const session = sessions.find(input.bcId)
      await deps.crashPoint('release.sandbox', async () => {
        if (session && session.incarnation <= input.incarnation) await endSession(deps, sessions, session)
        await releaseLease(deps, input)
      })
    })
}

export function createReleaseLease(deps: ActivityDeps): Activities['releaseLease'] {
  return (input) => orFail(() => releaseLease(deps, input))
}

async function releaseLease({ catalog, host }: ActivityDeps, { bcId }: AgentScope): Promise<void> {
  await catalog.leases.release(host, bcId, new AbortController().signal)
}

/** Ends the agent, the agent server and the sandbox, whatever state they are in. */
export async function endSession(
  deps: ActivityDeps,
  sessions: Sessions,
  session: HostSession,
): Promise<void> {
  const patience = AbortSignal.timeout(5000)
  const isLost =
    session.killed || (await Promise.race([session.server.lost.then(() => true), setImmediate(false)]))
  if (!isLost) await captureOnRelease(deps, session)
  await session.log
    .write({
      type: 'sandbox',
      incarnation: session.incarnation,
      state: isLost ? 'lost' : 'destroyed',
      ...(session.leaves && { reason: session.leaves }),
    })
    .catch(() => undefined)
  await session.log.flush().catch(() => 0)
  await session.agent?.close(patience).catch(() => undefined)
  session.controller.abort()
  await session.server.close().catch(() => undefined)
  await deps.sandboxes.destroy(session.sandbox.ref, new AbortController().signal)
  sessions.remove(session)
}

/** What was written since the last turn ended: by processes that it left behind. */
async function captureOnRelease(deps: ActivityDeps, session: HostSession): Promise<void> {
  const { workspace, turnId, controller } = session
  const limit = { limitMs: deps.stopAnswerMs, waitedFor: 'the capture before the release' }
  try {
    // Before its first turn nothing has run, but the user may have changed files.
    if (turnId !== undefined)
      await orKillSilent(deps, session, limit, () => workspace.capture(controller.signal))
    // What was captured is safe without it: a recovery has more to fold, and whoever stops waits no longer.
    const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(deps.stopAnswerMs)])
    await workspace.checkpointWhenDue(turnId ?? '', 0, signal)
  } catch (error) {
    deps.log.warn(
      { err: error, bc_id: session.bcId },
      'the capture or the checkpoint before a release failed',
    )
  }
}
