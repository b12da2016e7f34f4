import { TuttiError } from '@tutti/core'
import { s3Explanations, type S3Place } from './s3-explanations.ts'
import { loggableCause, s3Failure } from './s3-failure.ts'

/**
 * A failure of the store as `unavailable`, whatever its reason: to those who asked for a blob none of them is their own fault, and
 * all may be mended without them. `detail` has the reason, the bucket, where it is, S3's name and the HTTP status.
 */
export function s3Error(error: unknown, place: S3Place): TuttiError {
  if (error instanceof TuttiError) return error
  const failure = s3Failure(error)
  const { bucket, where } = place
  const what = failure.code || (failure.name === 'Error' ? `HTTP ${failure.status ?? 'error'}` : failure.name)
  const found = s3Explanations.find(({ when }) => when(failure))
  // Neither an answer nor a connection that failed: that is a fault of ours.
  if (!found && failure.status === undefined && failure.code === '') return TuttiError.from(error)
  const text =
    found?.text(place, what) ??
    `Bucket "${bucket}" at ${where} failed (${what}). Look at the server's log, then try again.`
  const detail = { reason: found?.reason ?? 'failed', bucket, endpoint: where, s3: what }
  return new TuttiError(
    'unavailable',
    text,
    failure.status === undefined ? detail : { ...detail, status: failure.status },
    loggableCause(error),
  )
}
