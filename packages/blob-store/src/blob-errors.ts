import { TuttiError, isBlobId, type BlobId } from '@tutti/core'
import type { ByteRange } from './port.ts'

export const notFound = (id: BlobId, cause?: unknown): TuttiError =>
  new TuttiError('not_found', `There is no blob ${id}.`, { id }, cause)

export const damaged = (id: BlobId): TuttiError =>
  new TuttiError('data_loss', `Blob ${id} is damaged in the store; restore it from a backup.`, { id })

/** Ids become file names and keys, so nothing else may pass. */
export function checkRead(id: BlobId, range: ByteRange | undefined): void {
  if (!isBlobId(id)) {
    throw new TuttiError('invalid_argument', 'A blob id is sha256_ and 64 lower-case hex digits.', {
      field: 'id',
    })
  }
  if (!range) return
  const { start, end } = range
  if (Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && end >= start) return
  throw new TuttiError('invalid_argument', 'A range is two whole numbers, 0 ≤ start ≤ end.', {
    field: 'range',
  })
}

export const archiveNotFound = (name: string, cause?: unknown): TuttiError =>
  new TuttiError('not_found', `The archive has no ${name}.`, { name }, cause)

export const archiveDamaged = (name: string, cause: unknown): TuttiError =>
  new TuttiError(
    'data_loss',
    `The disk cannot read ${name} of the archive; restore it from a backup.`,
    { name },
    cause,
  )

/** Names become paths and keys. @throws TuttiError `invalid_argument`. */
export function checkName(name: string): void {
  const parts = name.split('/')
  if (parts.length <= 8 && parts.every((part) => /^[A-Za-z0-9_-][\w.-]{0,254}$/.test(part))) return
  throw new TuttiError(
    'invalid_argument',
    'A name in the archive is parts of letters, digits and ._- with single slashes between.',
    { field: 'name' },
  )
}

/** The disk does not give a blob that is there. */
export const unreadable = (id: BlobId, cause: NodeJS.ErrnoException): TuttiError =>
  new TuttiError(
    'unavailable',
    `Blob ${id} cannot be read (${cause.code ?? cause.name}); look at the disk of the blob folder, then try again.`,
    { id },
    cause,
  )

/** A full or failing disk is `unavailable`, to be tried again; it must never look like a blob that is not there. */
export function diskFailed(cause: NodeJS.ErrnoException): never {
  if (cause instanceof TuttiError) throw cause
  throw new TuttiError(
    'unavailable',
    `The blob folder failed with ${cause.code ?? cause.name}; look at the disk, then try again.`,
    {},
    cause,
  )
}
