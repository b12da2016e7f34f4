import { TuttiError } from './errors.ts'

/** Letters and digits of any script, and signs that no shell, option parser or revision grammar gives a meaning. */
const safe = /^[\p{L}\p{M}\p{N}_./+=#,@-]+$/u
/** Bytes: a name is a file name in a repository on disk, and some part of it gets `.lock` behind it. */
const maxBytes = 200

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
  if (new TextEncoder().encode(name).length > maxBytes) return refuse(`it is longer than ${maxBytes} bytes`)
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
