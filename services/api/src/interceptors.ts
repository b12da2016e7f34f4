import type { Interceptor } from '@connectrpc/connect'
import { Code, ConnectError } from '@connectrpc/connect'
import { TuttiError } from '@tutti/core'
import type { Logger } from 'pino'

import type { ApiMetrics } from './metrics.ts'
import type { RequestRules } from './request-rules.ts'
import { startCallSpan } from './tracing.ts'
import { toConnectError } from './tutti-error-to-connect.ts'

/** Checks every request against the rules in the .proto files. @throws TuttiError `invalid_argument` with the path of the field. */
export function createValidateInterceptor({ check }: Pick<RequestRules, 'check'>): Interceptor {
  return (next) => (request) => {
    const { input } = request.method
    if (request.stream)
      return next({ ...request, message: checked(request.message, (message) => check(input, message)) })
    check(input, request.message)
    return next(request)
  }
}

async function* checked<T>(messages: AsyncIterable<T>, check: (message: T) => void): AsyncGenerator<T> {
  for await (const message of messages) {
    check(message)
    yield message
  }
}

/** Turns whatever a handler throws into the error of the wire; what is unknown is logged here and told to nobody. */
export function createErrorInterceptor({ log, metrics }: { log: Logger; metrics: ApiMetrics }): Interceptor {
  return (next) => async (request) => {
    const method = `${request.service.typeName}/${request.method.name}`
    const started = performance.now()
    const span = startCallSpan(
      request.service.typeName,
      request.method.name,
      request.header.get('traceparent'),
    )
    const end = (code: string) => {
      metrics.observeCall(method, code, (performance.now() - started) / 1000)
      span.end(code)
    }
    const fail = (thrown: unknown): ConnectError => {
      const error = translate(thrown, request.signal)
      if (error.code === Code.Internal || error.code === Code.DataLoss)
        log.error({ method, err: thrown }, 'call failed')
      end(Code[error.code])
      return error
    }
    try {
      const response = await span.run(() => next(request))
      if (!response.stream) {
        end('ok')
        return response
      }
      return { ...response, message: guarded(response.message, fail, end) }
    } catch (thrown) {
      throw fail(thrown)
    }
  }
}

async function* guarded<T>(
  messages: AsyncIterable<T>,
  fail: (thrown: unknown) => Error,
  end: (code: string) => void,
): AsyncGenerator<T> {
  let ended = false
  try {
    yield* messages
    ended = true
    end('ok')
  } catch (thrown) {
    ended = true
    throw fail(thrown)
  } finally {
    // The client went away: the generator is returned, not finished.
    if (!ended) end('Canceled')
  }
}

/** A call that was ended from outside (time limit, shutdown) fails with the reason for that, not with the abort it caused. */
function translate(thrown: unknown, signal: AbortSignal): ConnectError {
  if (signal.aborted && signal.reason instanceof ConnectError) return signal.reason
  return thrown instanceof ConnectError ? thrown : toConnectError(TuttiError.from(thrown))
}
