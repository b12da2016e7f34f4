import { expect, test } from 'vitest'
import { byteRange } from './byte-range.ts'

test.each([
  [undefined, undefined],
  ['bytes=0-3', { start: 0, end: 4 }],
  ['bytes=7-', { start: 7, end: 10 }],
  ['bytes=7-99', { start: 7, end: 10 }],
  ['bytes=-3', { start: 7, end: 10 }],
  ['bytes=-99', { start: 0, end: 10 }],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=5-4', undefined],
  ['bytes=0-1,3-4', undefined],
  ['bytes=-', undefined],
  ['lines=0-1', undefined],
  ['bytes=0x1-2', undefined],
  [`bytes=${'9'.repeat(30)}-`, undefined],
])('%s of ten bytes', (header, expected) => {
  expect(byteRange(header, 10)).toEqual(expected)
})

test('nothing of an empty thing can be had as a range', () => {
  expect(['bytes=0-', 'bytes=-1', 'bytes=0-0'].map((header) => byteRange(header, 0))).toEqual(
    Array(3).fill('unsatisfiable'),
  )
})
