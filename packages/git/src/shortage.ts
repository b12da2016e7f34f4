import { TuttiError } from '@tutti/core'

/**
 * What the host lacked when git failed; undefined when git failed for something else. Of git we have but its words; it is asked for English
 * ones. What it finds wrong with an object may be in words of an agent and counts for nothing here, and memory without measure is asked
 * for by a damaged number.
 */
export const shortageIn = (stderr: string): string | undefined =>
  /^(?:fatal|error): (?!object ).*?(No space left on device|Disk quota exceeded|File too large|Read-only file system|Out of memory(?!.* \d{11,} bytes)|Cannot allocate memory|Too many open files|Resource temporarily unavailable)/m.exec(
    stderr,
  )?.[1]

const codes: ReadonlySet<unknown> = new Set([
  'ENOSPC',
  'EDQUOT',
  'EMFILE',
  'ENFILE',
  'EROFS',
  'EAGAIN',
  'ENOMEM',
])

/** The same of what we do with files ourselves. */
export function shortageOf(thrown: unknown): TuttiError | undefined {
  if (thrown instanceof TuttiError || !(thrown instanceof Error) || !('code' in thrown)) return undefined
  return codes.has(thrown.code) ? lacking('A mirror', String(thrown.code), thrown) : undefined
}

export const lacking = (what: string, shortage: string, cause: Error): TuttiError =>
  new TuttiError(
    'unavailable',
    `${what} failed for what this host lacks (${shortage}). Look at its disk and memory, then try again.`,
    {},
    cause,
  )
