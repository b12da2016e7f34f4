import type { HandlerDeps } from './handler.ts'

/** A worker that died between log and catalog writes the row when its activity is tried again; a reader does not wait for that. */
const withinMs = 5000
const firstPauseMs = 20
const longestPauseMs = 320

export interface WatchedRow<Row> {
  /** As it was found. */
  readonly row: Row
  /**
   * Resolves when the row has come to this position of its log: whoever is told of an end may ask for the record next and must find it
   * there (STR-16). A row that stays behind is waited for 5 s, which the log says. A position that the row had reached costs no look.
   */
  reached(sequence: number): Promise<void>
}

/** Reads a row of the catalog, which follows its log. `commands.ts` waits likewise, for a state of which it knows no position. */
export async function watchRow<Row extends { readonly logSequence: number }>(
  { clock, log }: Pick<HandlerDeps, 'clock' | 'log'>,
  read: () => Promise<Row>,
  signal: AbortSignal,
): Promise<WatchedRow<Row>> {
  const row = await read()
  let newest = row.logSequence
  return {
    row,
    async reached(sequence) {
      const deadline = clock.monotonic() + withinMs
      for (let pauseMs = firstPauseMs; newest < sequence; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
        newest = (await read()).logSequence
        if (newest >= sequence) return
        if (clock.monotonic() >= deadline) {
          log.warn({ sequence, reached: newest }, 'the catalog is behind the log')
          return
        }
        await clock.sleep(pauseMs, signal)
      }
    },
  }
}
