import fc from 'fast-check'
import stringWidth from 'fast-string-width'
import { expect, test } from 'vitest'
import { wrap } from './wrap.ts'

test('breaks between words, within one only where it is longer than a line', () => {
  expect(wrap('the quick brown fox', 10)).toEqual(['the quick', 'brown fox'])
  expect(wrap('see /a/very/long/path', 12, '  ')).toEqual(['  see', '  /a/very/lo', '  ng/path'])
  expect(wrap('one\n  two\n\nthree', 80, '> ')).toEqual(['> one', '>   two', '>', '> three'])
  expect(wrap('as long as it likes', Infinity)).toEqual(['as long as it likes'])
})

test('never wider than asked for, and every character stays', () => {
  const text = fc.array(fc.constantFrom('日本語', 'a', 'word', ' ', '  ', 'x'.repeat(30), '\n', '👩‍💻'))
  fc.assert(
    fc.property(text, fc.integer({ min: 12, max: 40 }), (parts, width) => {
      const lines = wrap(parts.join(''), width, '  ')
      for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(width)
      expect(lines.join('').replaceAll(/\s/g, '')).toBe(parts.join('').replaceAll(/\s/g, ''))
    }),
  )
})
