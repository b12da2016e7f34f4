import fc from 'fast-check'
import { expect, test } from 'vitest'
import { shownPath } from './shown-path.ts'

test.each(['README.md', '-rf', 'a b/c', 'caf\u00e9', '日本語', '😀', "it's", '한글', 'x\u0302', '~$#'])(
  'REC-08 %s is plain to see and stands as it is',
  (path) => {
    expect(shownPath(path)).toBe(path)
    expect(shownPath(Buffer.from(path))).toBe(path)
  },
)

test.each<[string, string | Uint8Array, string]>([
  ['a space at the end', 'end ', String.raw`"end\u{20}"`],
  ['a space at the start', ' start', String.raw`"\u{20}start"`],
  ['two spaces', 'a  b', String.raw`"a\u{20} b"`],
  ['a space that is another one', 'a\u00a0b', String.raw`"a\u{a0}b"`],
  ['a line end', 'a\nb', String.raw`"a\nb"`],
  ['what commands a terminal', '\u001b[2J', String.raw`"\x1b[2J"`],
  ['both kinds of quotes', `'"`, String.raw`"'\""`],
  ['a backslash', String.raw`a\nb`, String.raw`"a\\nb"`],
  ['a letter in two parts', 'cafe\u0301', String.raw`"cafe\u{301}"`],
  ['a letter that stands for another one', '\u212b', String.raw`"\u{212b}"`],
  ['a syllable in its parts', '\u1112\u1161\u11ab', String.raw`"\u{1112}\u{1161}\u{11ab}"`],
  ['an invisible joiner', '👩\u200d💻', String.raw`"👩\u{200d}💻"`],
  ['a direction mark', 'a\u202eb', String.raw`"a\u{202e}b"`],
  ['a byte that is no UTF-8', Buffer.from([0x66, 0xff, 0xc3]), String.raw`"f\xff\xc3"`],
  ['the letter of that number', 'f\u00ff', 'f\u00ff'],
  ['the sign that takes its place', 'f\ufffd', 'f\ufffd'],
])('REC-08 %s', (_what, path, shown) => {
  expect(shownPath(path)).toBe(shown)
})

test('REC-08 different bytes never look the same, whatever a terminal makes of Unicode forms and spaces', () => {
  const alphabet = fc.constantFrom(
    'a',
    'e',
    '\u00e9',
    '\u0301',
    ' ',
    '\n',
    '"',
    '\\',
    'x',
    'n',
    '\u200b',
    '\u00ff',
    '{20}',
  )
  const name = fc
    .array(
      fc.oneof(
        alphabet.map((text) => Buffer.from(text)),
        fc.uint8Array({ maxLength: 2 }),
      ),
    )
    .map((parts) => Buffer.concat(parts))
  const seen = (path: Buffer) => shownPath(path).normalize('NFC').trim().replaceAll(/\s+/g, ' ')
  fc.assert(
    fc.property(name, name, (left, right) => {
      expect(seen(left) === seen(right)).toBe(left.equals(right))
      expect(shownPath(left)).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
    }),
    { numRuns: 500 },
  )
})
