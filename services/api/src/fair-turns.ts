import { performance } from 'node:perf_hooks'

/** Work that many streams do at once on the one event loop, cut into slices with everything else in between. */
export interface FairTurns {
  /** Nothing when there is time left in this slice; else resolves when it is this stream's turn again, first come, first served. */
  next(): Promise<void> | undefined
}

/**
 * Readers that catch up always have more to do, and between two steps of theirs only promises are settled: nothing else of this process
 * would run, neither the heartbeats of its worker nor the reading of new connections.
 *
 * @param sliceMs how long the streams together may work on before the loop goes round once.
 */
export function createFairTurns(sliceMs: number): FairTurns {
  const waiting: (() => void)[] = []
  let sliceStart = -Infinity

  const goOn = () => {
    sliceStart = performance.now()
    waiting.shift()?.()
    if (waiting.length > 0) setImmediate(goOn)
  }

  return {
    next() {
      if (performance.now() - sliceStart < sliceMs) return undefined
      return new Promise((resolve) => {
        waiting.push(resolve)
        if (waiting.length === 1) setImmediate(goOn)
      })
    },
  }
}
