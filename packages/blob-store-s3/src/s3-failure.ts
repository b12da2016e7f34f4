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
  const { name, Code, code, $metadata, $response } = (error ?? {}) as {
    name?: unknown
    Code?: unknown
    code?: unknown
    $metadata?: { httpStatusCode?: number }
    $response?: { headers?: Record<string, string> }
  }
  return {
    name: [Code, name].find((text) => isName(text)) ?? 'Error',
    status: $metadata?.httpStatusCode,
    code: isName(code) ? code : '',
    retryAfter: $response?.headers?.['retry-after'],
  }
}

/** It comes from the network and goes into messages. */
const isName = (text: unknown): text is string => typeof text === 'string' && /^[\w.]{1,60}$/.test(text)
