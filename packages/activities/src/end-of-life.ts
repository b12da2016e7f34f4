import { longestTimer } from '@tutti/core'
import type { ActivityDeps } from './deps.ts'
import type { HostSession } from './sessions.ts'
import type { TurnControl } from './turn-control.ts'

/** Until a workflow that has not given its sandbox up is asked once more, in milliseconds. */
const askAgainMs = 2000

/**
 * When the work of a sandbox has to move to another one, in milliseconds since the epoch: a margin before its end, and at most half of
 * the life that it has left, so that each sandbox gets some work done. Undefined for one that nobody ends.
 */
export function moveAtOf(
  { clock, endMarginMs }: Pick<ActivityDeps, 'clock' | 'endMarginMs'>,
  expiresAt: number | undefined,
): number | undefined {
  if (expiresAt === undefined) return undefined
  return expiresAt - Math.min(endMarginMs, Math.max(0, expiresAt - clock.now()) / 2)
}

/** Hands a turn over before its sandbox comes to its end. Returns what stops the watch. */
export function watchEndOfLife(
  { clock }: Pick<ActivityDeps, 'clock'>,
  { moveAt }: Pick<HostSession, 'moveAt'>,
  control: TurnControl,
): () => void {
  if (moveAt === undefined) return () => {}
  const move = () =>
    control.end({
      kind: 'handover',
      reason: 'sandbox_lost',
      detail: 'The sandbox comes to the end of its life.',
      why: 'expires',
    })
  const left = moveAt - clock.now()
  // At once, since one that stood idle may be gone by now: that is no loss.
  if (left <= 0) move()
  // No turn is longer than a timer.
  const timer = left > 0 && left <= longestTimer ? setTimeout(move, left) : undefined
  return () => clearTimeout(timer)
}

/**
 * Gives a sandbox that stands idle up before it comes to its end: with a last capture, as any release. Its workflow is asked until the
 * session is over, since it hears nothing while it does something else.
 */
export function leaveBeforeEnd(
  deps: Pick<ActivityDeps, 'askToRelease' | 'clock' | 'log'>,
  session: HostSession,
): void {
  const { bcId, moveAt, controller, server } = session
  if (moveAt === undefined) return
  let timer: NodeJS.Timeout
  const wait = (ms: number) => {
    timer = setTimeout(look, Math.min(ms, longestTimer)).unref()
  }
  const look = () => {
    const left = moveAt - deps.clock.now()
    if (left > 0) return wait(left)
    wait(askAgainMs)
    // A turn moves by itself.
    if (session.inTurn || session.killed) return
    session.leaves ??= 'expires'
    deps
      .askToRelease(bcId)
      .catch((error: unknown) =>
        deps.log.warn({ err: error, bc_id: bcId }, 'could not ask an idle agent to leave its sandbox'),
      )
  }
  look()
  const stop = () => clearTimeout(timer)
  controller.signal.addEventListener('abort', stop, { once: true })
  void server.lost.then(stop)
}
