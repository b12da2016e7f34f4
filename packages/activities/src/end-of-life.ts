import type { ActivityDeps } from './deps.ts'
import type { HostSession } from './sessions.ts'
import type { TurnControl } from './turn-control.ts'

/** A timer takes no longer time than this, in milliseconds; no turn does either. */
const longestTimer = 2 ** 31 - 1

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
  const timer = left > 0 && left <= longestTimer ? setTimeout(move, left) : undefined
  return () => clearTimeout(timer)
}
