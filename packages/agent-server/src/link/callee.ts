import { TuttiError } from '@tutti/core'
import { createCallStream, type CallPlumbing, type CallStream } from './call.ts'
import type { WireHeader } from './caller.ts'
import type { Link } from './link.ts'

/** Answers one call. `signal` aborts when the caller gives up; the answer is still awaited, so clean up first. */
export type CallHandler = (params: never, call: CallStream, signal: AbortSignal) => Promise<unknown>

/** The answering end: runs handlers by method name. */
export function createCallee(
  link: Pick<Link, 'send'>,
  handlers: Readonly<Record<string, CallHandler>>,
): (header: WireHeader, bytes: Uint8Array) => void {
  const open = new Map<number, { stream: CallPlumbing; abort: AbortController }>()
  const post = (header: WireHeader, bytes?: Uint8Array) => link.send(header, bytes)

  async function answer(c: number, method: string, params: unknown): Promise<void> {
    const abort = new AbortController()
    const stream = createCallStream({
      message: (head, bytes) => post({ t: 'msg', c, head }, bytes),
      end: () => void post({ t: 'end', c }),
      credit: (n) => void post({ t: 'credit', c, n }),
    })
    open.set(c, { stream, abort })
    try {
      const handler = handlers[method]
      if (!handler)
        throw new TuttiError('invalid_argument', `The agent server has no method ${method}.`, { method })
      const result = await handler(params as never, stream, abort.signal)
      await post({ t: 'done', c, result: result ?? null })
    } catch (thrown) {
      const error = thrown instanceof TuttiError ? thrown : internalError(method, thrown)
      await post({ t: 'fail', c, code: error.code, message: error.message, detail: error.detail })
    } finally {
      open.delete(c)
    }
  }

  return (header, bytes) => {
    if (header.t === 'call') return void answer(header.c, header.method, header.params).catch(() => {})
    const call = open.get(header.c)
    if (!call) return
    if (header.t === 'msg') call.stream.onMessage({ head: header.head, bytes })
    else if (header.t === 'end') call.stream.onEnd()
    else if (header.t === 'credit') call.stream.onCredit(header.n)
    else if (header.t === 'cancel') {
      call.abort.abort()
      // Senders that wait for a reader who has gone would wait for ever.
      call.stream.fail(new TuttiError('cancelled', 'The caller gave up.'))
    }
  }
}

/** The inside is not trusted and its failures are often the agent's doing, so what happened is said. */
function internalError(method: string, thrown: unknown): TuttiError {
  const text = thrown instanceof Error ? thrown.message : String(thrown)
  return new TuttiError('internal', `The agent server failed in ${method}: ${text.slice(0, 500)}`, { method })
}
