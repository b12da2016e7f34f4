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
