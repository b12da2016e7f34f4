import { Code, ConnectError } from '@connectrpc/connect'
import { TuttiError, errorCodes, type ErrorCode, type ErrorDetail } from '@tutti/core'
import { ErrorDetailsSchema } from '@tutti/proto'

const codeOfConnect = new Map<string, ErrorCode>(
  Object.entries(errorCodes).map(([code, row]) => [row.connect, code as ErrorCode]),
)

/** `NotFound` → `not_found`: the spelling of the Connect protocol. */
const connectName = (code: Code): string => Code[code].replace(/(?<!^)[A-Z]/g, '_$&').toLowerCase()

/** Left by the transport when a connection broke; the server never sent these words. */
const brokenConnection = /missing EndStreamResponse|premature|socket hang up|ECONNRESET|EPIPE|aborted$/i

/**
 * Any failure of a call as a TuttiError: the server's code and details where it sent them, else the code that the core table
 * pairs with the Connect code. What the transport made up about a broken or refused connection is `unavailable` with `server: unreachable`.
 */
export function tuttiErrorOf(thrown: unknown): TuttiError {
  if (thrown instanceof TuttiError) return thrown
  if (!(thrown instanceof ConnectError)) {
    return thrown instanceof Error && thrown.name === 'AbortError'
      ? TuttiError.from(thrown)
      : unreachable(thrown)
  }
  const [sent] = thrown.findDetails(ErrorDetailsSchema)
  const info = sent?.details?.additionalInfo ?? {}
  if (sent && Object.hasOwn(errorCodes, info['code'] ?? '')) {
    const { code, ...detail } = info
    return new TuttiError(code as ErrorCode, thrown.rawMessage, detail, thrown)
  }
  if (thrown.cause instanceof TuttiError) return thrown.cause
  const noAnswer =
    thrown.code === Code.Unavailable || thrown.code === Code.Aborted || thrown.code === Code.Unknown
  if (!sent && (noAnswer || (thrown.code !== Code.Canceled && brokenConnection.test(thrown.rawMessage)))) {
    return unreachable(thrown)
  }
  const code = codeOfConnect.get(connectName(thrown.code)) ?? 'internal'
  const detail: ErrorDetail = code === 'internal' ? { connect: connectName(thrown.code) } : {}
  return new TuttiError(code, thrown.rawMessage, detail, thrown)
}

function unreachable(cause: unknown): TuttiError {
  return new TuttiError(
    'unavailable',
    'The Tutti server could not be reached or broke the connection. Check that it runs.',
    { server: 'unreachable' },
    cause,
  )
}

/** What one of our own routes answered: HTTP, with the code and the message in JSON. */
export function tuttiErrorOfHttp(status: number, body: string): TuttiError {
  try {
    const { code, message } = JSON.parse(body) as { code?: unknown; message?: unknown }
    const known = codeOfConnect.get(String(code))
    if (known && typeof message === 'string') return new TuttiError(known, message)
  } catch {
    // Somebody else has answered: a proxy, or the store.
  }
  const code = status === 404 ? 'not_found' : status >= 500 || status === 429 ? 'unavailable' : 'internal'
  return new TuttiError(code, `A content could not be had or stored (HTTP ${status}).`, { status })
}
