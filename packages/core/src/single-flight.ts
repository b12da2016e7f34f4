import { orCancelled } from './cancellation.ts'

/**
 * Runs the work of a key once for all who ask while it is under way; the next to ask starts anew. Work that fails is told to who
 * started it alone: the others do their own, as its failure may be that one's cancel. The work calls `leave`, at its first
 * `await` or later, when it is too late for more to join it.
 */
export type SingleFlight<Key, T> = (
  key: Key,
  signal: AbortSignal,
  work: (leave: () => void) => Promise<T>,
) => Promise<T>

export function createSingleFlight<Key, T extends object>(): SingleFlight<Key, T> {
  const flying = new Map<Key, Promise<T>>()
  return async (key, signal, work) => {
    const shared = flying.get(key)?.catch(() => undefined)
    const result = shared && (await orCancelled(shared, signal))
    if (result) return result
    const leave = () => {
      if (flying.get(key) === own) flying.delete(key)
    }
    const own = work(leave)
    flying.set(key, own)
    return own.finally(leave)
  }
}
