/** Time as a dependency, so that tests can turn it by hand. */
export interface Clock {
  /** Milliseconds since the epoch. May jump. */
  now(): number
  /** Milliseconds since some start. Never goes back. */
  monotonic(): number
  /** Resolves after `ms`. @throws TuttiError `cancelled` when the signal aborts first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}
