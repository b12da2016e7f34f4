import { isBusy } from './sqlite-errors.ts'

const patienceMs = 10_000
const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * Runs a step that another process may hold up, for ten seconds at most. SQLite's own busy handler backs off to 100 ms, which
 * starves one of two busy writers; commits here take about a millisecond, so short sleeps are right.
 */
export function retryBusy<T>(step: () => T): T {
  const end = performance.now() + patienceMs
  for (;;) {
    try {
      return step()
    } catch (error) {
      if (!isBusy(error) || performance.now() > end) throw error
      Atomics.wait(sleeper, 0, 0, 1 + Math.random() * 3)
    }
  }
}
