import { TuttiError } from '@tutti/core'
import type { ThreadError } from './messages.ts'

/** Primary result codes of SQLite that we tell apart (sqlite.org/rescode.html). */
const primary = { busy: 5, locked: 6, constraint: 19, corrupt: 11, notADatabase: 26, tooBig: 18 } as const
const uniqueViolations = new Set([1555, 2067])
const outside = new Map([
  [5, 'is held by another process for too long; try again'],
  [6, 'is held by another process for too long; try again'],
  [7, 'has no memory left; free some and try again'],
  [8, 'cannot be written; make its folder writable'],
  [10, 'failed to read or write; look at the disk, then try again'],
  [13, 'is on a full disk; free some space and try again'],
  [14, 'cannot be opened; check that its folder exists and is readable'],
])

const codeOf = (error: unknown): number | undefined =>
  error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
    ? error.errcode
    : undefined

export const isBusy = (error: unknown): boolean => {
  const code = (codeOf(error) ?? 0) & 0xff
  return code === primary.busy || code === primary.locked
}

export const isCorrupt = (error: unknown): boolean => {
  const code = (codeOf(error) ?? 0) & 0xff
  return code === primary.corrupt || code === primary.notADatabase
}

/** Whether the failure concerns this one request, so that the others of its transaction may still be committed. */
export const concernsOne = (error: unknown): boolean => {
  if (error instanceof TuttiError) return true
  const code = (codeOf(error) ?? 0) & 0xff
  return code === primary.constraint || code === primary.tooBig
}

/** Anything that was thrown in the SQLite thread, as a TuttiError. */
export function fromSqlite(error: unknown): TuttiError {
  const code = codeOf(error)
  if (code === undefined) return TuttiError.from(error)
  if (uniqueViolations.has(code)) return new TuttiError('already_exists', 'It exists already.', {}, error)
  if (isCorrupt(error)) {
    return new TuttiError(
      'data_loss',
      'The store is damaged; restore the data folder from a backup.',
      {},
      error,
    )
  }
  const what = outside.get(code & 0xff)
  if (what) return new TuttiError('unavailable', `The store ${what}.`, { sqlite: code }, error)
  return TuttiError.from(error)
}

export function toThreadError(error: unknown): ThreadError {
  const { code, message, detail, cause } = fromSqlite(error)
  return { code, message, detail, cause: cause instanceof Error ? String(cause.stack) : '' }
}

export const fromThreadError = ({ code, message, detail, cause }: ThreadError): TuttiError =>
  new TuttiError(code, message, detail, cause ? new Error(cause) : undefined)
