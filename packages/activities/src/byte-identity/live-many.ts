import type { Life, LifeOptions } from './life.ts'

/** How often each agent loses its sandbox: so many that one recovery follows on another, so few that a failure can be read. */
export const recoveriesOfLife = 10

/** Two agents at a time: a recovery waits for half of its time. */
const atOnce = 2

export interface ManyLives {
  readonly recoveries: number
  readonly faults: number
  /** Seeds. */
  readonly failed: readonly number[]
}

export interface ManyLivesOptions {
  /** Of the first agent; the others follow. */
  readonly seed: number
  /** At least so many. */
  readonly recoveries: number
  readonly live: (options: LifeOptions) => Promise<Life>
  readonly signal: AbortSignal
  readonly onLife?: (recoveries: number) => void
  readonly onFailure: (seed: number, error: Error) => void
}

/** Agents one after another, until there were enough recoveries or it is aborted; failures do not end it. */
export async function liveMany(options: ManyLivesOptions): Promise<ManyLives> {
  const { seed, live, signal, onLife, onFailure } = options
  const failed: number[] = []
  let recoveries = 0
  let faults = 0
  let next = seed
  const lives = Math.ceil(options.recoveries / recoveriesOfLife)
  const one = async (): Promise<void> => {
    while (next < seed + lives && !signal.aborted) {
      const own = next++
      try {
        const life = await live({ seed: own, recoveries: recoveriesOfLife, signal })
        recoveries += life.recoveries
        faults += life.faults
        onLife?.(recoveries)
      } catch (error) {
        // An end that was asked for is no failure.
        if (signal.aborted) return
        failed.push(own)
        onFailure(own, error as Error)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, one))
  return { recoveries, faults, failed }
}
