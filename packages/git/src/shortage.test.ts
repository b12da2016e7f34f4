import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { shortageIn, shortageOf } from './shortage.ts'

test.each([
  ['fatal: write error: No space left on device', 'No space left on device'],
  [
    'warning: x\nerror: unable to create temporary file: Too many open files\nfatal: failed',
    'Too many open files',
  ],
  ['fatal: Out of memory, malloc failed (tried to allocate 30000001 bytes)', 'Out of memory'],
  // A damaged number.
  ['fatal: Out of memory, malloc failed (tried to allocate 18446744073709551615 bytes)', undefined],
  ['fatal: pack has bad object at offset 46641: inflate returned -3', undefined],
  // A name that an agent gave.
  [`error: object ${'a'.repeat(40)}: gitmodulesName: disallowed: No space left on device`, undefined],
  ['remote: fatal: write error: No space left on device', undefined],
])('%s', (stderr, shortage) => {
  expect(shortageIn(stderr)).toBe(shortage)
})

test('of files it is told by the code', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
  expect(shortageOf(full)).toMatchObject({ code: 'unavailable' })
  expect(shortageOf(new Error('x'))).toBeUndefined()
  expect(() => readFileSync('/proc/none')).toThrow(
    expect.toSatisfy((thrown) => shortageOf(thrown) === undefined) as Error,
  )
})
