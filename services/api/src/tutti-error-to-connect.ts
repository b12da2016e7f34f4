import { Code, ConnectError } from '@connectrpc/connect'
import { errorCodes, type TuttiError } from '@tutti/core'
import { ErrorDetailsSchema, ErrorType } from '@tutti/proto'

/** Keeps every answer under 4 KiB (API-02), whatever a message quotes. */
const maxMessageChars = 1000
const maxDetailChars = 200
const maxDetails = 8

const connectCodes: Record<(typeof errorCodes)[keyof typeof errorCodes]['connect'], Code> = {
  invalid_argument: Code.InvalidArgument,
  unauthenticated: Code.Unauthenticated,
  permission_denied: Code.PermissionDenied,
  not_found: Code.NotFound,
  already_exists: Code.AlreadyExists,
  failed_precondition: Code.FailedPrecondition,
  aborted: Code.Aborted,
  out_of_range: Code.OutOfRange,
  resource_exhausted: Code.ResourceExhausted,
  deadline_exceeded: Code.DeadlineExceeded,
  canceled: Code.Canceled,
  unavailable: Code.Unavailable,
  data_loss: Code.DataLoss,
  internal: Code.Internal,
}

/** The error as the wire carries it, with `aiserver.v1.ErrorDetails` (seed 002). The cause and the stack stay here. */
export function toConnectError(error: TuttiError): ConnectError {
  const row = errorCodes[error.code]
  const message = cut(error.message, maxMessageChars)
  const additionalInfo = Object.fromEntries(
    Object.entries(error.detail)
      .slice(0, maxDetails)
      .map(([name, value]) => [name, cut(String(value), maxDetailChars)]),
  )
  return new ConnectError(message, connectCodes[row.connect], undefined, [
    {
      desc: ErrorDetailsSchema,
      value: {
        error: ErrorType[row.seed],
        isExpected: !['internal', 'data_loss', 'unavailable'].includes(error.code),
        details: {
          title: titleOf(message),
          detail: message,
          isRetryable: row.retry,
          additionalInfo: { ...additionalInfo, code: error.code },
        },
      },
    },
  ])
}

const titleOf = (message: string) => cut(message.split(/(?<=[.:])\s|\n/, 1)[0] ?? '', 120)

/** Cuts between characters, never inside a pair of surrogates. */
function cut(text: string, chars: number): string {
  const whole = text.toWellFormed()
  return whole.length <= chars
    ? whole
    : `${whole
        .slice(0, chars - 1)
        .toWellFormed()
        .replace(/\ufffd$/, '')}…`
}
