import { createFairTurns } from './fair-turns.ts'

/** One write to a socket at most; what is longer already stays whole. */
const mergedBytes = 64 << 10
/** Shorter than anything else of the server can be kept waiting; long enough that turns cost nothing. */
const turns = createFairTurns(5)

/**
 * The same bytes in fewer pieces: what the source has ready at once becomes one piece. A reader that catches up then costs a write for
 * thousands of events instead of one each; a live one waits no longer than one turn of the event loop.
 */
export async function* mergeChunks(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  let ended = false
  const next = () => {
    const step = iterator.next()
    // It is awaited further down, maybe after it has failed.
    step.catch(() => {
      ended = true
    })
    return step
  }
  let pending = next()
  try {
    for (;;) {
      const first = await pending
      if (first.done) {
        ended = true
        return
      }
      const chunks = [first.value]
      let size = first.value.byteLength
      pending = next()
      while (size < mergedBytes) {
        await turns.next()
        const more = await ready(pending)
        if (!more || more.done) break
        chunks.push(more.value)
        size += more.value.byteLength
        pending = next()
      }
      yield chunks.length === 1 ? first.value : Buffer.concat(chunks)
    }
  } finally {
    // The client went away, which may be told by a throw, while the source was at work; what it still says is for nobody.
    if (!ended) await iterator.return?.()
  }
}

/** The result if it is there within this turn of the event loop. A failure is left for whoever awaits it. */
function ready<T>(pending: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve) => {
    const immediate = setImmediate(resolve, undefined)
    const settle = (value?: T) => {
      clearImmediate(immediate)
      resolve(value)
    }
    pending.then(settle, () => settle())
  })
}
