import { cancelledBy, throwIfCancelled } from '@tutti/core'

/**
 * The chunks of a put, until the caller gives up: then `cancelled` at once, even while the source is waited for. The source is
 * told to end in every case.
 */
export async function* abortableSource(
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  throwIfCancelled(signal)
  if (bytes instanceof Uint8Array) {
    yield bytes
    return
  }
  const source = bytes[Symbol.asyncIterator]()
  const aborted = Promise.withResolvers<never>()
  aborted.promise.catch(() => {})
  const onAbort = () => aborted.reject(cancelledBy(signal))
  signal.addEventListener('abort', onAbort, { once: true })
  let ended = false
  try {
    for (;;) {
      const { done, value } = await Promise.race([source.next(), aborted.promise])
      if (done) {
        ended = true
        return
      }
      yield value
      throwIfCancelled(signal)
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    // Not awaited: a source that hangs would hang the caller who gave up.
    if (!ended) source.return?.().catch(() => {})
  }
}
