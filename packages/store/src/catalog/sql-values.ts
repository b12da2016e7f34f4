import { TuttiError } from '@tutti/core'

/** The object without its null and undefined fields: optional fields are absent in rows, NULL in tables. */
export function defined<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const kept = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined)
  return Object.fromEntries(kept) as { [K in keyof T]?: NonNullable<T[K]> }
}

/** Says what exists already, where the database only knows that a unique value is taken. */
export const takenAs =
  (what: string, id: string) =>
  (error: unknown): never => {
    if (!(error instanceof TuttiError) || error.code !== 'already_exists') throw error
    throw new TuttiError('already_exists', `${what} exists already.`, { id }, error)
  }
