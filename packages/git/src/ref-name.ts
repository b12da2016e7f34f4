import { TuttiError } from '@tutti/core'

const hash = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/
/** Letters and digits of any script, and signs that no shell, option parser or revision grammar gives a meaning. */
const safe = /^[\p{L}\p{M}\p{N}_./+=#,@-]+$/u
const maxLength = 200

export const isHash = (text: string): boolean => hash.test(text)

/** A hash, or the beginning of one. */
export const mayBeHash = (text: string): boolean => /^[0-9a-f]{7,64}$/.test(text)

/**
 * Refuses what is not a plain name of a branch or tag (SEC-11): stricter than `git check-ref-format`, since names also end up
 * in addresses, terminals and scripts.
 *
 * @throws TuttiError `invalid_argument` with the field.
 */
export function checkRefName(name: string, field: string): string {
  const refuse = (why: string): never => {
    throw new TuttiError('invalid_argument', `${field} is not a name that can be used: ${why}.`, { field })
  }
  if (name === '') return refuse('it is empty')
  if (name.length > maxLength) return refuse(`it is longer than ${maxLength} characters`)
  if (!safe.test(name)) return refuse('only letters, digits and . _ / + = # , @ - are allowed')
  if (/^[-./@]/.test(name)) return refuse('it starts with - . / or @')
  if (/[/.]$/.test(name)) return refuse('it ends with / or .')
  if (name.includes('..') || name.includes('//') || name.includes('/.') || name.includes('/-')) {
    return refuse('it has .. // /. or /- inside')
  }
  if (name.split('/').some((part) => part.endsWith('.lock'))) return refuse('a part of it ends with .lock')
  return name
}

/** A branch that can be pushed to. @throws TuttiError `invalid_argument`. */
export function checkBranch(name: string, field = 'branch'): string {
  checkRefName(name, field)
  if (name === 'HEAD' || name.startsWith('refs/')) {
    throw new TuttiError('invalid_argument', `${field} must be a branch's short name, such as fix/login.`, {
      field,
    })
  }
  return name
}

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
