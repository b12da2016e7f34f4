import { TuttiError } from '@tutti/core'
import { howToGetAnEngine } from './find-engine.ts'

/** The HTTP status of an answer that the engine gave; undefined when it gave none. */
export const statusOf = (thrown: unknown): number | undefined =>
  thrown instanceof Error && 'statusCode' in thrown && typeof thrown.statusCode === 'number'
    ? thrown.statusCode
    : undefined

/** What the engine itself said, without the client's framing. */
export const wordsOf = (thrown: unknown): string =>
  (thrown instanceof Error ? thrown.message : String(thrown))
    .replace(/^\(HTTP code \d+\) .*? - /s, '')
    .trim()
    .slice(0, 1000)

/**
 * What went wrong with the engine, for people.
 *
 * @param doing completes "The container engine could not …".
 * @returns a TuttiError: `cancelled` after an abort, `unavailable` when the engine cannot be reached or failed inside,
 *   `failed_precondition` when it refused.
 */
export function engineError(thrown: unknown, doing: string, socketPath: string): TuttiError {
  if (thrown instanceof TuttiError) return thrown
  const inTime = !(
    thrown instanceof Error &&
    thrown.cause instanceof Error &&
    thrown.cause.name === 'TimeoutError'
  )
  if (thrown instanceof Error && thrown.name === 'AbortError' && inTime) return TuttiError.from(thrown)
  const status = statusOf(thrown)
  const detail = { socket: socketPath }
  if (status !== undefined) {
    const code = status >= 500 ? 'unavailable' : 'failed_precondition'
    return new TuttiError(code, `The container engine could not ${doing}: ${wordsOf(thrown)}`, detail, thrown)
  }
  const system = thrown instanceof Error && 'code' in thrown ? String(thrown.code) : ''
  const message =
    system === 'EACCES'
      ? `This user may not use the container engine at ${socketPath}. Add it to the group of that socket (usually docker), or run a rootless engine.`
      : `The container engine at ${socketPath} does not answer (${inTime ? system || wordsOf(thrown) : 'in time'}). ${howToGetAnEngine}.`
  return new TuttiError('unavailable', message, detail, thrown)
}
