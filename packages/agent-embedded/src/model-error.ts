import { APICallError } from '@ai-sdk/provider'
import { TuttiError } from '@tutti/core'
import { RetryError } from 'ai'

/** 529 is Anthropic's "overloaded". */
const rateLimitStatuses = new Set([429, 529])

/**
 * What went wrong with a model, for a person. A rate limit becomes `resource_exhausted` with the reason `rate_limited`; the rest
 * `unavailable` or `failed_precondition`. Keys that a provider repeats in its answer are taken out.
 */
export function describeModelError(thrown: unknown, secrets: readonly string[]): TuttiError {
  if (thrown instanceof TuttiError) return thrown
  const error = RetryError.isInstance(thrown) ? thrown.lastError : thrown
  const hide = (text: string) =>
    secrets.reduce((rest, secret) => rest.replaceAll(secret, '[key]'), text).slice(0, 1000)
  if (!APICallError.isInstance(error)) {
    const message = error instanceof Error ? error.message : String(error)
    return new TuttiError('unavailable', `The model call failed: ${hide(message)}`)
  }
  const { statusCode } = error
  if (statusCode !== undefined && rateLimitStatuses.has(statusCode)) {
    const after = Number(error.responseHeaders?.['retry-after'])
    return new TuttiError(
      'resource_exhausted',
      `The provider refused because of its rate limit (HTTP ${statusCode}): ${hide(error.message)} Send a follow-up later to go on.`,
      { reason: 'rate_limited', ...(after >= 0 ? { retryAfterSeconds: after } : {}) },
    )
  }
  if (statusCode === 401 || statusCode === 403) {
    return new TuttiError(
      'failed_precondition',
      `The provider refused the key of the worker (HTTP ${statusCode}): ${hide(error.message)}`,
    )
  }
  const answer = statusCode === undefined ? 'did not answer' : `answered HTTP ${statusCode}`
  return new TuttiError('unavailable', `The model's server ${answer}: ${hide(error.message)}`)
}
