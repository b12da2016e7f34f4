import { addCounts, noCounts, type LifeCounts } from './life-counts.ts'
import type { LifeOptions } from './life.ts'

/** How often each agent loses its sandbox: so many that one recovery follows on another, so few that a failure can be read. */
export const recoveriesOfLife = 10

/** Two agents at a time: a recovery waits for half of its time. */
const atOnce = 2

export interface ManyLives extends LifeCounts {
  /** Seeds. */
  readonly failed: readonly number[]
}

export interface ManyLivesOptions {
  /** Of the first agent; the others follow. */
  readonly seed: number
  /** At least so many. */
  readonly recoveries: number
  readonly live: (options: LifeOptions) => Promise<LifeCounts>
  readonly signal: AbortSignal
  readonly onLife?: (recoveries: number) => void
  readonly onFailure: (seed: number, error: Error) => void
}

/** Agents one after another, until there were enough recoveries or it is aborted; failures do not end it. */
export async function liveMany(options: ManyLivesOptions): Promise<ManyLives> {
  const { seed, live, signal, onLife, onFailure } = options
  const failed: number[] = []
  let counts = noCounts
  let next = seed
  const lives = Math.ceil(options.recoveries / recoveriesOfLife)
  const one = async (): Promise<void> => {
    while (next < seed + lives && !signal.aborted) {
      const own = next++
      try {
        const life = await live({ seed: own, recoveries: recoveriesOfLife, signal })
        counts = addCounts(counts, life)
        onLife?.(counts.recoveries)
      } catch (error) {
        // An end that was asked for is no failure.
        if (signal.aborted) return
        failed.push(own)
        onFailure(own, error as Error)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  return { ...counts, failed }
}
