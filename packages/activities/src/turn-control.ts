import type { Interruption, Reason } from '@tutti/core'

/** Why a running turn is being ended, and the signal that ends it. The first word counts. */
export interface TurnControl {
  readonly signal: AbortSignal
  readonly ended: () => TurnStop | undefined
  end(stop: TurnStop): void
  /** Something happened: the stall timer starts again. */
  alive(): void
  close(): void
}

/** `handover`: the turn goes on in another sandbox, for the reason `why`. `lost`: the sandbox is gone. */
export interface TurnStop {
  readonly kind: 'command' | 'limit' | 'handover' | 'lost'
  readonly reason: Reason
  readonly detail: string
  readonly why?: Exclude<Interruption, 'lost'>
}

export function createTurnControl(limits: {
  readonly timeoutMs: number
  readonly stallMs: number
}): TurnControl {
  const controller = new AbortController()
  let stop: TurnStop | undefined
  const end = (next: TurnStop) => {
    if (stop) return
    stop = next
    controller.abort()
  }
  const minutes = (ms: number) =>
    ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`
  const stalled = () =>
    end({ kind: 'limit', reason: 'stalled', detail: `The agent did nothing for ${minutes(limits.stallMs)}.` })
  const deadline = setTimeout(
    () =>
      end({
        kind: 'limit',
        reason: 'timeout',
        detail: `The turn took longer than ${minutes(limits.timeoutMs)}.`,
      }),
    limits.timeoutMs,
  )
  let stallTimer = setTimeout(stalled, limits.stallMs)
  return {
    signal: controller.signal,
    ended: () => stop,
    end,
    alive() {
      clearTimeout(stallTimer)
      stallTimer = setTimeout(stalled, limits.stallMs)
    },
    close() {
      clearTimeout(deadline)
      clearTimeout(stallTimer)
    },
  }
}
