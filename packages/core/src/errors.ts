/**
 * Every way in which Tutti refuses or fails. The list is closed, so that each surface can map all of it: `connect` is the
 * Connect code, `http` the status on our own routes, `exit` the CLI's exit code, `retry` whether the same call may succeed
 * later unchanged, `seed` the `aiserver.v1.ErrorDetails.Error` value that accompanies it (seed 002).
 */
export const errorCodes = {
  invalid_argument: { connect: 'invalid_argument', http: 400, exit: 64, retry: false, seed: 'UNSPECIFIED' },
  unauthenticated: { connect: 'unauthenticated', http: 401, exit: 4, retry: false, seed: 'NOT_LOGGED_IN' },
  permission_denied: { connect: 'permission_denied', http: 403, exit: 4, retry: false, seed: 'UNSPECIFIED' },
  not_found: { connect: 'not_found', http: 404, exit: 5, retry: false, seed: 'UNSPECIFIED' },
  already_exists: { connect: 'already_exists', http: 409, exit: 1, retry: false, seed: 'UNSPECIFIED' },
  failed_precondition: {
    connect: 'failed_precondition',
    http: 409,
    exit: 1,
    retry: false,
    seed: 'UNSPECIFIED',
  },
  aborted: { connect: 'aborted', http: 409, exit: 1, retry: true, seed: 'UNSPECIFIED' },
  out_of_range: { connect: 'out_of_range', http: 410, exit: 1, retry: false, seed: 'UNSPECIFIED' },
  resource_exhausted: {
    connect: 'resource_exhausted',
    http: 429,
    exit: 7,
    retry: true,
    seed: 'RESOURCE_EXHAUSTED',
  },
  deadline_exceeded: { connect: 'deadline_exceeded', http: 504, exit: 6, retry: true, seed: 'TIMEOUT' },
  cancelled: { connect: 'canceled', http: 499, exit: 2, retry: false, seed: 'USER_ABORTED_REQUEST' },
  unavailable: { connect: 'unavailable', http: 503, exit: 69, retry: true, seed: 'UNSPECIFIED' },
  data_loss: { connect: 'data_loss', http: 500, exit: 1, retry: false, seed: 'UNSPECIFIED' },
  internal: { connect: 'internal', http: 500, exit: 1, retry: false, seed: 'UNSPECIFIED' },
} as const satisfies Record<
  string,
  { connect: string; http: number; exit: number; retry: boolean; seed: string }
>

export type ErrorCode = keyof typeof errorCodes

export type ErrorDetail = Readonly<Record<string, string | number | boolean>>

/**
 * The one error that crosses a package boundary.
 *
 * `message` is for the person who reads it and says what to do next; `detail` is for programs (a field path, a hash, a
 * limit, a `reason` of the closed list). The cause is kept for logs and never becomes part of the message, so that it
 * cannot leak.
 */
export class TuttiError extends Error {
  override readonly name = 'TuttiError'
  readonly code: ErrorCode
  readonly detail: ErrorDetail

  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}, cause?: unknown) {
    super(message, { cause })
    this.code = code
    this.detail = detail
  }

  /** Anything that was thrown, as a TuttiError; an abort becomes `cancelled`, what is unknown becomes `internal`. */
  static from(thrown: unknown): TuttiError {
    if (thrown instanceof TuttiError) return thrown
    if (thrown instanceof Error && (thrown.name === 'AbortError' || thrown.name === 'TimeoutError')) {
      return new TuttiError('cancelled', 'The call was cancelled.', {}, thrown)
    }
    return new TuttiError('internal', 'Something failed inside Tutti; the log has the cause.', {}, thrown)
  }
}
