import type { LogId } from '@tutti/core'
import type { LogHead } from './port.ts'

export interface LogWaiter {
  /** Resolves once the log may have grown beyond the position. */
  readonly woken: Promise<void>
  leave(): void
}

/** Who waits for which log. Cheap to hold many: a waiter is a promise and a position. */
export interface LogWaiters {
  /** To be entered before the read that may find nothing, so that no append falls in between. */
  enter(log: LogId, position: number): LogWaiter
  /** The log has changed. */
  wake(log: LogId): void
  wakeAll(): void
  /** Wakes those whose log is longer than their position, or closed. */
  compare(heads: ReadonlyMap<LogId, LogHead>): void
  logs(): readonly LogId[]
}

/** @param onOccupied told when the first waiter comes and when the last one has left. */
export function createLogWaiters(onOccupied: (occupied: boolean) => void): LogWaiters {
  const waiting = new Map<LogId, Set<{ position: number; wake: () => void }>>()

  return {
    enter(log, position) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const entry = { position, wake: resolve }
      const entries = waiting.get(log) ?? new Set()
      if (waiting.size === 0) onOccupied(true)
      waiting.set(log, entries.add(entry))
      return {
        woken: promise,
        leave() {
          if (!entries.delete(entry) || entries.size > 0) return
          waiting.delete(log)
          if (waiting.size === 0) onOccupied(false)
        },
      }
    },
    wake(log) {
      for (const { wake } of waiting.get(log) ?? []) wake()
    },
    wakeAll() {
      for (const entries of waiting.values()) for (const { wake } of entries) wake()
    },
    compare(heads) {
      for (const [log, { last, closed }] of heads) {
        for (const { position, wake } of waiting.get(log) ?? []) if (closed || last > position) wake()
      }
    },
    logs: () => [...waiting.keys()],
  }
}
