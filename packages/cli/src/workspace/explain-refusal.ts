import { TuttiError, type ErrorDetail } from '@tutti/core'

const makeRoom = 'make room on its disk, then the same command again'
const newFolder = 'the same command with a new folder'

const nextOf: Readonly<Record<string, string>> = {
  ENOSPC: makeRoom,
  EDQUOT: makeRoom,
  ENOENT: `put it back where it was, or ${newFolder}`,
  ENOTEMPTY: newFolder,
}

/** What SQLite calls a full disk, in its own way. */
export const sqliteFull = 13

/**
 * What a file system refuses of a folder as a whole, as an error of that folder's; anything else as it is.
 *
 * @param subject of the sentence
 */
export function explainRefusal(thrown: unknown, subject: string, detail: ErrorDetail): unknown {
  if (!(thrown instanceof Error) || thrown instanceof TuttiError) return thrown
  const { code, syscall, errcode } = thrown as NodeJS.ErrnoException & { errcode?: number }
  const reason = errcode === sqliteFull ? 'ENOSPC' : code
  if (reason === undefined || (syscall === undefined && errcode === undefined)) return thrown
  const next = nextOf[reason] ?? 'make it a folder that you may write to, or name another'
  return new TuttiError(
    'failed_precondition',
    `${subject} cannot be used: ${thrown.message}.`,
    { ...detail, next },
    thrown,
  )
}
