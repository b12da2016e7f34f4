import { statfsSync } from 'node:fs'
import { TuttiError } from '@tutti/core'

/**
 * What the disk of the sandbox refused because it is at its limit, as an error that names the limit; undefined for any other failure. By the
 * time somebody looks at the disk from outside, what did not fit is most times gone again.
 *
 * @param folder on that disk
 * @param unwritten bytes that were to be written and are not there
 */
export function diskFull(thrown: unknown, folder: string, unwritten = 0): TuttiError | undefined {
  if (thrown instanceof TuttiError && thrown.detail['reason'] === 'resource_limit') return thrown
  const { code, message } = thrown as NodeJS.ErrnoException
  const isFull =
    thrown instanceof TuttiError
      ? code === 'failed_precondition' &&
        (gitSays.test(message) || (gitHints.test(message) && nearlyNoRoom(folder, unwritten)))
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
/** Of a file of the work tree or the index it does not say why, and may remove what it wrote. */
const gitHints = /unable to write/

function nearlyNoRoom(folder: string, unwritten: number): boolean {
  try {
    const { bavail, blocks, bsize } = statfsSync(folder)
    return bavail * bsize < unwritten + (blocks * bsize) / 20
  } catch {
    return false
  }
}

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
