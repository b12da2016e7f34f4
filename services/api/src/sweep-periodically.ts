import { TuttiError } from '@tutti/core'

import type { ApiDeps } from './api-deps.ts'

/** Sweeps, now or after the first pause, and then again after each, until the answer is called, which waits for the sweep that is under way. */
export function sweepPeriodically(
  deps: ApiDeps,
  everyMs: number,
  sweep: (deps: ApiDeps, signal: AbortSignal) => Promise<unknown>,
  firstMs = 0,
): () => Promise<void> {
  const stop = new AbortController()
  const running = (async () => {
    if (firstMs > 0) await deps.clock.sleep(firstMs, stop.signal).catch(ignoreCancelled)
    while (!stop.signal.aborted) {
      await sweep(deps, stop.signal).catch((err: unknown) => {
        if (!stop.signal.aborted) deps.log.error({ err }, 'sweep failed')
      })
      await deps.clock.sleep(everyMs, stop.signal).catch(ignoreCancelled)
    }
  })()
  return async () => {
    stop.abort()
    await running
  }
}

function ignoreCancelled(error: unknown): void {
  if (!(error instanceof TuttiError) || error.code !== 'cancelled') throw error
}
