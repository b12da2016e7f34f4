import { expect, test } from 'vitest'
import { cutTitle } from './cut-title.ts'

test.for([
  ['fits as it is', 13, 'fits as it is'],
  ['make the tests pass again', 24, 'make the tests pass…'],
  ['make the tests pass again', 22, 'make the tests pass…'],
  ['make the tests pass again', 21, 'make the tests…'],
  ['unpronounceable', 10, 'unprono…'],
  ['größere Änderung', 12, 'größere…'],
  ['quotes """""""" count twice', 20, 'quotes…'],
  ['👩‍👩‍👧👩‍👩‍👧', 30, '👩‍👩‍👧…'],
] as const)('%j in %i bytes is %j', ([title, bytes, cut]) => {
  expect(cutTitle(title, bytes)).toBe(cut)
  expect(Buffer.byteLength(JSON.stringify(cut)) - 2).toBeLessThanOrEqual(bytes)
})
