import { TuttiError } from './errors.ts'

/** What is read, or undefined where there is none. @throws TuttiError whatever else the reading fails with. */
export const ifFound = <T>(reading: Promise<T>): Promise<T | undefined> =>
  reading.catch((error: unknown) => {
    if (TuttiError.from(error).code === 'not_found') return undefined
    throw error
  })
