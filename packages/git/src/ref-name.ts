import { checkRefName, TuttiError } from '@tutti/core'

const hash = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/

export const isHash = (text: string): boolean => hash.test(text)

/** A hash, or the beginning of one. */
export const mayBeHash = (text: string): boolean => /^[0-9a-f]{7,64}$/.test(text)

/** One of our own refs. @throws TuttiError `invalid_argument`. */
export function checkOwnRef(ref: string): string {
  checkRefName(ref, 'ref')
  if (!ref.startsWith('refs/tutti/') || ref.startsWith('refs/tutti/source/')) {
    throw new TuttiError('invalid_argument', 'Only refs below refs/tutti can be written.', { field: 'ref' })
  }
  return ref
}

/** A full hash. @throws TuttiError `invalid_argument`. */
export function checkHash(text: string, field: string): string {
  if (isHash(text)) return text
  throw new TuttiError('invalid_argument', `${field} must be a full commit hash.`, { field })
}
