import { TuttiError } from '@tutti/core'
import { flagOfField } from '../flag-of-field.ts'

/**
 * What the server refused about a spec that came from a file, with the file and the key in it, unless a flag went over that key.
 */
export function nameFile(thrown: unknown, file: string | undefined, flags: object): unknown {
  if (!(thrown instanceof TuttiError) || file === undefined) return thrown
  const { field } = thrown.detail
  if (typeof field !== 'string' || !field.startsWith('spec.')) return thrown
  const option = flagOfField(field)
    ?.slice(2)
    .replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
  if (option !== undefined && Object.hasOwn(flags, option)) return thrown
  const key = field.slice('spec.'.length)
  const message = thrown.message.startsWith(field)
    ? thrown.message.slice('spec.'.length)
    : `${key}: ${thrown.message}`
  return new TuttiError(thrown.code, `${file}: ${message}`, { path: file, key }, thrown)
}
