import { setTimeout } from 'node:timers/promises'
import { cancelledBy, throwIfCancelled } from '@tutti/core'
import { isPassing, pauseAskedFor } from './passing-failures.ts'
import type { S3Limits } from './s3-limits.ts'

export type RetryLimits = Pick<S3Limits, 'patienceMs' | 'firstPauseMs' | 'longestPauseMs'>

/**
 * Runs a request until it succeeds, fails for good, or the patience is over; the last failure is thrown. Pauses double, with half of
 * each drawn by lot, so that many who were refused at once do not come back at once.
 *
 * @throws TuttiError `cancelled`
 */
export async function retry<T>(
  limits: RetryLimits,
  signal: AbortSignal,
  request: () => Promise<T>,
): Promise<T> {
  const begun = performance.now()
  for (let pause = limits.firstPauseMs; ; pause = Math.min(pause * 2, limits.longestPauseMs)) {
    throwIfCancelled(signal)
    try {
      return await request()
    } catch (error) {
      if (signal.aborted) throw cancelledBy(signal)
      const drawn = pause / 2 + (Math.random() * pause) / 2
      const wait = Math.min(Math.max(drawn, pauseAskedFor(error)), limits.longestPauseMs)
      if (!isPassing(error) || performance.now() - begun + wait > limits.patienceMs) throw error
      await setTimeout(wait, undefined, { signal }).catch(() => {})
    }
  }
}
