import type { Readable } from 'node:stream'
import { cancelledBy } from '@tutti/core'

/**
 * The bytes of an answer. Fails with a `TimeoutError` when none come for so long, however long the reader takes for each; the
 * connection is given up when the reader stops early.
 *
 * @throws TuttiError `cancelled`
 */
export async function* bodyChunks(
  body: Readable,
  inactivityMs: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  // A failure while nobody reads is heard with the next read.
  body.on('error', () => {})
  const onAbort = () => body.destroy(cancelledBy(signal))
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
  try {
    for (;;) {
      const timer = setTimeout(() => body.destroy(new DOMException('no bytes', 'TimeoutError')), inactivityMs)
      const { done, value } = await chunks.next().finally(() => clearTimeout(timer))
      if (done) return
      yield value
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    body.destroy()
  }
}
