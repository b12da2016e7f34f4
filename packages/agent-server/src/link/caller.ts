import { TuttiError, type ErrorCode, type ErrorDetail } from '@tutti/core'
import { answerHeader } from './answer-header.ts'
import { createCallStream, type CallPlumbing, type CallStream } from './call.ts'
import type { Link } from './link.ts'

/** What travels in frame headers. `c` is the call's number. */
export type WireHeader =
  | { readonly t: 'call'; readonly c: number; readonly method: string; readonly params: unknown }
  | { readonly t: 'msg'; readonly c: number; readonly head: unknown }
  | { readonly t: 'end'; readonly c: number }
  | { readonly t: 'credit'; readonly c: number; readonly n: number }
  | { readonly t: 'cancel'; readonly c: number }
  | { readonly t: 'done'; readonly c: number; readonly result: unknown }
  | {
      readonly t: 'fail'
      readonly c: number
      readonly code: ErrorCode
      readonly message: string
      readonly detail: ErrorDetail
    }

export interface OutgoingCall extends CallStream {
  /** The answer. After an abort it still waits for the other side to have cleaned up, and then rejects with `cancelled`. */
  readonly result: Promise<unknown>
  /** Asks the other side to stop; nothing when it already has. */
  cancel(): void
}

export interface Caller {
  call(method: string, params: unknown, signal: AbortSignal): OutgoingCall
  /** @throws Error when the header is none that an answering end may send: the other side is broken or lies. */
  onMessage(header: unknown, bytes: Uint8Array): void
  /** Fails every open and later call. */
  fail(error: TuttiError): void
}

/** The calling end: many calls at once over one link. */
export function createCaller(link: Pick<Link, 'send'>): Caller {
  let nextCall = 1
  let broken: TuttiError | undefined
  const open = new Map<
    number,
    { stream: CallPlumbing; resolve(result: unknown): void; reject(error: TuttiError): void }
  >()
  const post = (header: WireHeader, bytes?: Uint8Array) => link.send(header, bytes)
  const postQuietly = (header: WireHeader) => void post(header).catch(() => {})

  return {
    call(method, params, signal) {
      const c = nextCall
      nextCall += 1
      const stream = createCallStream({
        message: (head, bytes) => post({ t: 'msg', c, head }, bytes),
        end: () => postQuietly({ t: 'end', c }),
        credit: (n) => open.has(c) && postQuietly({ t: 'credit', c, n }),
      })
      const cancel = () => open.has(c) && postQuietly({ t: 'cancel', c })
      const result = new Promise<unknown>((resolve, reject) => {
        if (broken) return reject(broken)
        if (signal.aborted) return reject(cancelled(method))
        open.set(c, { stream, resolve, reject })
        postQuietly({ t: 'call', c, method, params })
        signal.addEventListener('abort', cancel, { once: true })
      })
      const settled = result.finally(() => signal.removeEventListener('abort', cancel))
      const checked = settled.then((value) => {
        if (signal.aborted) throw cancelled(method)
        return value
      })
      // Whoever reads the messages also sees the failure there; not awaiting the result is allowed.
      checked.catch((error: Error) => stream.fail(error))
      return { ...stream, result: checked, cancel }
    },
    onMessage(received, bytes) {
      const { data: header } = answerHeader.safeParse(received)
      if (!header) throw new Error('a header that cannot be')
      const call = open.get(header.c)
      if (!call) return
      if (header.t === 'msg') call.stream.onMessage({ head: header.head, bytes })
      else if (header.t === 'end') call.stream.onEnd()
      else if (header.t === 'credit') call.stream.onCredit(header.n)
      else if (header.t === 'done') {
        open.delete(header.c)
        call.stream.onEnd()
        call.resolve(header.result)
      } else if (header.t === 'fail') {
        open.delete(header.c)
        call.reject(new TuttiError(header.code, header.message, header.detail))
      }
    },
    fail(error) {
      broken ??= error
      for (const [c, call] of open) {
        open.delete(c)
        call.reject(broken)
      }
    },
  }
}

const cancelled = (method: string) =>
  new TuttiError('cancelled', `The call ${method} was cancelled.`, { method })
