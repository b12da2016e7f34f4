/** What the SDK or Node threw, as far as it decides anything. Their messages are left alone: some servers put signatures into them. */
export interface S3Failure {
  /** S3's name of the error, such as `NoSuchBucket`, or the class of an error of Node or the SDK; `Error` when it has none. */
  readonly name: string
  /** HTTP status; undefined when there was no answer. */
  readonly status: number | undefined
  /** Of Node, such as `ECONNRESET`; else empty. */
  readonly code: string
  readonly retryAfter: string | undefined
}

export function s3Failure(error: unknown): S3Failure {
  const { name, message, Code, code, $metadata, $response } = (error ?? {}) as {
    name?: unknown
    message?: unknown
    Code?: unknown
    code?: unknown
    $metadata?: { httpStatusCode?: number }
    $response?: { headers?: Record<string, string> }
  }
  // The one failure of the SDK that has no name.
  const unnamed = message === 'Region is missing' ? 'RegionMissing' : 'Error'
  return {
    name: unnamed === 'Error' ? ([Code, name].find((text) => isName(text)) ?? unnamed) : unnamed,
    status: $metadata?.httpStatusCode,
    code: isName(code) ? code : '',
    retryAfter: $response?.headers?.['retry-after'],
  }
}

/**
 * What a log may have of a failure: an answer as its name, status and number. The SDK's own error has all that the server sent, among
 * it, where a signature was refused, that signature and what it signs.
 */
export function loggableCause(error: unknown): unknown {
  const { $metadata } = (error ?? {}) as { $metadata?: { requestId?: string } }
  if (!$metadata) return error
  const { name, status } = s3Failure(error)
  const request = $metadata.requestId ? `, request ${$metadata.requestId}` : ''
  return new Error(`the server answered ${name} (HTTP ${status ?? 'none'}${request})`)
}

/** It comes from the network and goes into messages. */
const isName = (text: unknown): text is string => typeof text === 'string' && /^[\w.]{1,60}$/.test(text)
