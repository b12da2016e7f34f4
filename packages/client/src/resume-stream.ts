import { TuttiError, systemClock, type Clock } from '@tutti/core'
import { backoffMs } from './backoff.ts'
import { tuttiErrorOf } from './tutti-error-of.ts'

export interface ResumePolicy {
  /** Default: the system's. */
  readonly clock?: Clock
  /** From 0 up to 1. Default Math.random. */
  readonly random?: () => number
  /**
   * A stream that is silent for this long is taken for broken, in milliseconds. Default 45 s: the server's heartbeats come
   * every 10 s (design §11.11).
   */
  readonly silenceMs?: number
  /** Gives up when no message has come for this long, in milliseconds. Default: never; the signal ends it. */
  readonly giveUpMs?: number
  /** Told of each broken connection, before the wait. */
  readonly onBroken?: (error: TuttiError, waitMs: number) => void
}

export interface Resumable<T> {
  /** Opens the stream after this position; undefined is the start. Called anew for each connection. */
  readonly open: (
    from: string | undefined,
    signal: AbortSignal,
  ) => AsyncIterable<T> | Promise<AsyncIterable<T>>
  /** The position after a message. */
  readonly offsetOf: (message: T) => string
  /** Keep-alive: counts as a sign of life and is not given to the caller. */
  readonly isHeartbeat: (message: T) => boolean
  readonly from?: string | undefined
  readonly signal: AbortSignal
}

/**
 * A server stream as one unbroken sequence: after a lost connection it opens again after the last offset, so that every message
 * comes once. Offsets sort in log order within a log, so a message that a server repeats is recognised and dropped.
 *
 * @throws TuttiError what the server answered for good; `cancelled` when the signal aborts; `unavailable` after `giveUpMs`.
 */
export async function* resumeStream<T>(stream: Resumable<T>, policy: ResumePolicy = {}): AsyncGenerator<T> {
  const {
    clock = systemClock,
    random = Math.random,
    silenceMs = 45_000,
    giveUpMs = Infinity,
    onBroken,
  } = policy
  let position = stream.from === '' ? undefined : stream.from
  let failures = 0
  let lastSign = clock.monotonic()
  for (;;) {
    const connection = new AbortController()
    const signal = AbortSignal.any([stream.signal, connection.signal])
    let watchdog = setTimeout(() => connection.abort(), silenceMs)
    try {
      for await (const message of await stream.open(position, signal)) {
        clearTimeout(watchdog)
        watchdog = setTimeout(() => connection.abort(), silenceMs)
        failures = 0
        lastSign = clock.monotonic()
        if (stream.isHeartbeat(message)) continue
        const offset = stream.offsetOf(message)
        if (position !== undefined && offset <= position) continue
        position = offset
        // The caller may take long over a message; that is not the server's silence.
        clearTimeout(watchdog)
        yield message
        watchdog = setTimeout(() => connection.abort(), silenceMs)
      }
      return
    } catch (thrown) {
      if (stream.signal.aborted) throw new TuttiError('cancelled', 'Following was cancelled.', {}, thrown)
      const error = tuttiErrorOf(thrown)
      const broken = connection.signal.aborted || error.code === 'unavailable' || error.code === 'aborted'
      if (!broken || clock.monotonic() - lastSign > giveUpMs) throw error
      failures += 1
      const waitMs = backoffMs(failures, random)
      onBroken?.(error, waitMs)
      await clock.sleep(waitMs, stream.signal)
    } finally {
      clearTimeout(watchdog)
      connection.abort()
    }
  }
}
