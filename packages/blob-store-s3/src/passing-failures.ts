import { s3Failure } from './s3-failure.ts'

/** By S3's name. Bytes that arrived damaged (`BadDigest` and the like) were right when they were hashed: sent again, they may arrive. */
const passingNames = new Set([
  'BadDigest',
  'ConditionalRequestConflict',
  'IncompleteBody',
  'InternalError',
  'OperationAborted',
  'RequestTimeTooSkewed',
  'RequestTimeout',
  'ServiceUnavailable',
  'SlowDown',
  'Throttling',
  'ThrottlingException',
  'TimeoutError',
  'TooManyRequests',
  'TooManyRequestsException',
  'XAmzContentChecksumMismatch',
  'XAmzContentSHA256Mismatch',
])

const passingStatuses = new Set([408, 409, 429, 500, 502, 503, 504])

/** Of the connection: the request may not have arrived, or its answer was lost. */
const passingCodes =
  /^(?:ECONN(?:RESET|REFUSED|ABORTED)|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ERR_STREAM_PREMATURE_CLOSE|HPE_\w+)$/

/** Whether the same request may succeed a moment later. */
export function isPassing(error: unknown): boolean {
  const { name, status, code } = s3Failure(error)
  if (passingNames.has(name) || passingCodes.test(code)) return true
  if (status === undefined) return false
  // An answer that says success and cannot be read was damaged on its way.
  return passingStatuses.has(status) || (status >= 200 && status < 300)
}

/** Milliseconds that the server asks to wait (`Retry-After`); 0 when it does not. */
export function pauseAskedFor(error: unknown): number {
  const seconds = Number(s3Failure(error).retryAfter)
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 0
}
