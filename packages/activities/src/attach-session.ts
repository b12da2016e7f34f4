import { TuttiError } from '@tutti/core'
import { isMarked } from '@tutti/sandbox'
import type { ActivityDeps } from './deps.ts'
import { sandboxLost } from './fail.ts'
import { orKillSilent } from './kill-silent.ts'
import type { HostSession } from './sessions.ts'

type Deps = Pick<ActivityDeps, 'sandboxes' | 'log' | 'captureTimeoutMs'>

/**
 * Takes up a sandbox that stood idle, once it is sure that it is the one that it was: the provider still has it, its disk is marked
 * with its key, and where nothing has run since the last capture every path is as it was captured. What is not there without proof is not gone:
 * anything else is no sandbox of this agent, nothing of it is captured any more, and the turn goes on in another one.
 *
 * @param stopped the turn has been ended from outside: it needs no sandbox any more
 * @throws ApplicationFailure `sandbox_lost`
 */
export async function attachSession(deps: Deps, session: HostSession, stopped: AbortSignal): Promise<void> {
  const signal = AbortSignal.any([session.controller.signal, stopped])
  const problem = await problemOf(deps, session, signal).catch((error: unknown) => {
    // A stop does not wait for the look, and needs none.
    if (!stopped.aborted) throw error
  })
  if (problem === undefined) return
  deps.log.warn({ bc_id: session.bcId, problem }, 'a sandbox that stood idle is not taken up again')
  session.killed = true
  await session.server.kill().catch(() => undefined)
  throw sandboxLost(problem)
}

async function problemOf(deps: Deps, session: HostSession, signal: AbortSignal): Promise<string | undefined> {
  const { sandbox, workspace, quiet } = session
  try {
    const attached = await deps.sandboxes.attach(sandbox.ref, signal)
    if (!attached) return 'The sandbox is gone.'
    const { provider, key, id } = attached.ref
    const isSame = provider === sandbox.ref.provider && key === sandbox.ref.key && id === sandbox.ref.id
    if (!isSame || !(await isMarked(attached, signal)))
      return 'What the provider gave back is not the sandbox that it was.'
  } catch (error) {
    // Unknown is not gone: its agent server has the word.
    if (!(error instanceof TuttiError) || error.code !== 'unavailable') throw error
  }
  if (!quiet) return undefined
  const limit = { limitMs: deps.captureTimeoutMs, waitedFor: 'a look at an idle workspace' }
  const isSame = await orKillSilent(deps, session, limit, () => workspace.isAsCaptured(signal))
  return isSame ? undefined : 'The disk of the sandbox is not what was captured of it.'
}
