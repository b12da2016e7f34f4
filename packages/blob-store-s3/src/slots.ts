import { cancelledBy, throwIfCancelled } from '@tutti/core'

/** Lets so many pieces of work run at once; the others wait in order. */
export type Slots = <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T>

export function createSlots(count: number): Slots {
  let free = count
  const waiting: (() => void)[] = []

  async function take(signal: AbortSignal): Promise<void> {
    throwIfCancelled(signal)
    if (free > 0) {
      free -= 1
      return
    }
    const turn = Promise.withResolvers<void>()
    const onAbort = () => {
      const place = waiting.indexOf(turn.resolve)
      // Off the list: the slot was given a moment ago, and goes back when the work has ended.
      if (place === -1) return
      waiting.splice(place, 1)
      turn.reject(cancelledBy(signal))
    }
    waiting.push(turn.resolve)
    signal.addEventListener('abort', onAbort, { once: true })
    await turn.promise.finally(() => signal.removeEventListener('abort', onAbort))
  }

  return async (signal, work) => {
    await take(signal)
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else free += 1
    }
  }
}
