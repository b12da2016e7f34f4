import { TuttiError } from '@tutti/core'

/** Reads a whole number within bounds. @throws TuttiError `invalid_argument` with `field` and the bounds. */
export function parseCount(text: string, field: string, min: number, max: number): number {
  const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new TuttiError(
    'invalid_argument',
    `${field}: ${JSON.stringify(text)} must be a whole number from ${min} to ${max}.`,
    { field, min, max },
  )
}
