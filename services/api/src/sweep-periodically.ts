import { TuttiError } from '@tutti/core'

import type { ApiDeps } from './api-deps.ts'

/** Sweeps now and then again after each pause, until the answer is called, which waits for the sweep that is under way. */
export function sweepPeriodically(
  deps: ApiDeps,
  everyMs: number,
  sweep: (deps: ApiDeps, signal: AbortSignal) => Promise<unknown>,
): () => Promise<void> {
  const stop = new AbortController()
  const running = (async () => {
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
