import type { Clock } from '@tutti/core'

/** A worker that died between log and catalog writes the row when its activity is tried again; a reader does not wait for that. */
const withinMs = 5000
const pollMs = 20

/**
 * Resolves when the catalog's row has come to a position of its log: whoever is told of an end may ask for the record next and must
 * find it there (STR-16).
 *
 * @param row as the reader found it when it began: what was recorded by then costs no look.
 */
export function createProjectionWait(
  read: (signal: AbortSignal) => Promise<{ readonly logSequence: number }>,
  row: { readonly logSequence: number },
  clock: Clock,
): (sequence: number, signal: AbortSignal) => Promise<void> {
  let reached = row.logSequence
  return async (sequence, signal) => {
    const deadline = clock.monotonic() + withinMs
    while (reached < sequence) {
      reached = (await read(signal)).logSequence
      if (reached >= sequence || clock.monotonic() >= deadline) return
      await clock.sleep(pollMs, signal)
    }
  }
}
