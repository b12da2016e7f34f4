import type { CliDeps } from '../deps.ts'

/** SIGINT counts: the first asks for an end, the second for one at once. SIGTERM is a first one, however often it comes. */
export function watchInterrupts(
  deps: Pick<CliDeps, 'onSignal'>,
  { onFirst, onSecond }: { readonly onFirst: () => void; readonly onSecond: () => void },
): { stop(): void } {
  let asked = false
  const first = () => {
    asked = true
    onFirst()
  }
  const unsubscribe = [
    deps.onSignal('SIGINT', () => (asked ? onSecond() : first())),
    deps.onSignal('SIGTERM', () => {
      if (!asked) first()
    }),
    deps.onSignal('SIGHUP', () => {
      if (!asked) first()
    }),
  ]
  return {
    stop() {
      for (const off of unsubscribe) off()
    },
  }
}
