import { statfsSync } from 'node:fs'
import { TuttiError } from '@tutti/core'

/**
 * What the disk of the sandbox refused because it is at its limit, as an error that names the limit; undefined for any other failure. By the
 * time somebody looks at the disk from outside, what did not fit is most times gone again.
 *
 * @param folder on that disk
 */
export function diskFull(thrown: unknown, folder: string): TuttiError | undefined {
  const { code, message } = thrown as NodeJS.ErrnoException
  const isFull =
    thrown instanceof TuttiError
      ? code === 'failed_precondition' && gitSays.test(message)
      : code === 'ENOSPC' || code === 'EDQUOT'
  if (!isFull) return undefined
  const limit = nearlyNoFiles(folder) ? 'files' : 'disk'
  const what = limit === 'files' ? 'no more files can be made' : 'there is no space left'
  return new TuttiError(
    'resource_exhausted',
    `The disk of the sandbox is full: ${what}.`,
    { reason: 'resource_limit', limit },
    thrown,
  )
}

/** Of git we have but its words; it is asked for English ones. */
const gitSays = /No space left on device|Disk quota exceeded/

/** What could not be made may have given its entry back. */
const nearly = 16

function nearlyNoFiles(folder: string): boolean {
  try {
    const { files, ffree } = statfsSync(folder)
    return files > 0 && ffree < nearly
  } catch {
    return false
  }
}
