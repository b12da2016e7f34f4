import { cancelledBy, throwIfCancelled, type LogId } from '@tutti/core'
import type { EventLog, ReadResult } from '@tutti/store'

/** Reads of the logs that many readers want at the same time. */
export interface SharedReads {
  /** What is there after `from`, at once. */
  read(log: LogId, from: number, signal: AbortSignal): Promise<ReadResult>
  /** Waits until something is there after `from`; undefined when nothing came within `waitMs`. */
  next(log: LogId, from: number, waitMs: number, signal: AbortSignal): Promise<ReadResult | undefined>
}

interface Shared {
  readonly result: Promise<ReadResult>
  readonly stop: AbortController
  readers: number
}

/** A read that waits is renewed after this long; readers have their own, shorter patience. */
const renewMs = 60_000

/**
 * Readers that stand at the same position of a log share one read, so that an event costs the store one read however many follow it.
 * A reader that leaves does not disturb the others; the last one ends the read.
 */
export function createSharedReads(eventLog: EventLog): SharedReads {
  const shared = new Map<string, Shared>()

  function join(log: LogId, from: number, waitMs: number): [Shared, () => void] {
    const key = `${log}/${from}/${waitMs}`
    const known = shared.get(key) ?? begin(key, log, from, waitMs)
    known.readers += 1
    const leave = () => {
      known.readers -= 1
      if (known.readers > 0) return
      forget(key, known)
      known.stop.abort()
    }
    return [known, leave]
  }

  function begin(key: string, log: LogId, from: number, waitMs: number): Shared {
    const stop = new AbortController()
    const begun: Shared = { result: eventLog.read(log, from, { waitMs }, stop.signal), stop, readers: 0 }
    shared.set(key, begun)
    // Whoever comes later asks again; a failure is told to those who wait.
    begun.result.finally(() => forget(key, begun)).catch(() => undefined)
    return begun
  }

  function forget(key: string, known: Shared): void {
    if (shared.get(key) === known) shared.delete(key)
  }

  return {
    async read(log, from, signal) {
      // It is over soon; only a signal that has been given already matters.
      throwIfCancelled(signal)
      const [{ result }, leave] = join(log, from, 0)
      try {
        return await result
      } finally {
        leave()
      }
    },
    async next(log, from, waitMs, signal) {
      const [{ result }, leave] = join(log, from, renewMs)
      const own = Promise.withResolvers<undefined>()
      const timer = setTimeout(() => own.resolve(undefined), waitMs)
      const onAbort = () => own.reject(cancelledBy(signal))
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        if (signal.aborted) onAbort()
        return await Promise.race([result, own.promise])
      } finally {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
        leave()
      }
    },
  }
}
