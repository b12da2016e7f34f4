import type { ActivityDeps } from './deps.ts'
import type { HostSession } from './sessions.ts'

type KillDeps = Pick<ActivityDeps, 'sandboxes' | 'log'>

/**
 * Kills the sandbox of a session that has not answered, with everything in it. What still waits for it fails then, as its link
 * breaks. What was captured before is kept.
 */
export async function killSilent(
  deps: KillDeps,
  session: Pick<HostSession, 'bcId' | 'sandbox' | 'server' | 'killed'>,
  waitedFor: string,
): Promise<void> {
  const { bcId, sandbox, server } = session
  session.killed = true
  deps.log.warn({ bc_id: bcId, waited_for: waitedFor }, 'the sandbox did not answer in time and is killed')
  try {
    await server.kill()
    await deps.sandboxes.destroy(sandbox.ref, new AbortController().signal)
  } catch (error) {
    // The release of the sandbox tries again, and the reaper after it.
    deps.log.warn({ err: error, bc_id: bcId }, 'a silent sandbox could not be destroyed')
  }
}

/** Waits for what a sandbox has to do, and kills it when that takes longer than `limitMs` milliseconds. */
export async function orKillSilent<T>(
  deps: KillDeps,
  session: HostSession,
  { limitMs, waitedFor }: { readonly limitMs: number; readonly waitedFor: string },
  work: () => Promise<T>,
): Promise<T> {
  const deadline = createDeadline(deps, session, waitedFor)
  deadline.within(limitMs)
  try {
    return await work()
  } finally {
    await deadline.done()
  }
}

/** A time limit for a sandbox's answer; what has not answered by then is killed. */
export function createDeadline(deps: KillDeps, session: HostSession, waitedFor: string) {
  let timer: NodeJS.Timeout | undefined
  let killing: Promise<void> | undefined
  return {
    /** Milliseconds from now; takes the place of an earlier limit. */
    within(limitMs: number) {
      clearTimeout(timer)
      timer = setTimeout(() => (killing = killSilent(deps, session, waitedFor)), limitMs)
    },
    /** It has answered. Resolves when a kill that had begun is over. */
    async done() {
      clearTimeout(timer)
      await killing
    },
  }
}
