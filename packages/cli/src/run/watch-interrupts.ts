import type { CliDeps } from '../deps.ts'

export interface Interrupts {
  /** `isKey`: it was SIGINT and there is a terminal, so that a second Ctrl-C can be spoken of. */
  readonly onFirst: (isKey: boolean) => void
  readonly onSecond: () => void
}

/** SIGINT counts: the first asks for an end, the second for one at once. SIGTERM is a first one, however often it comes. */
export function watchInterrupts(
  deps: Pick<CliDeps, 'onSignal' | 'stderr'>,
  { onFirst, onSecond }: Interrupts,
): { stop(): void } {
  let asked = false
  const first = (isKey: boolean) => {
    asked = true
    onFirst(isKey)
  }
  const unsubscribe = [
    deps.onSignal('SIGINT', () => (asked ? onSecond() : first(deps.stderr.isTTY))),
    deps.onSignal('SIGTERM', () => {
      if (!asked) first(false)
    }),
    deps.onSignal('SIGHUP', () => {
      if (!asked) first(false)
    }),
  ]
  return {
    stop() {
      for (const off of unsubscribe) off()
    },
  }
}
