import { expect, test } from 'vitest'
import { promptTitle } from './prompt-title.ts'

test('a title is the first line that says something, on one line and safe', () => {
  expect(promptTitle('\n  \n  Fix \t the\u202Etest  \r\nThe rest')).toBe('Fix the\\u{202e}test')
  expect(promptTitle('One\u2028Two')).toBe('One')
  expect(promptTitle('  \n')).toBe('Untitled')
})

test('a long title is cut between characters', () => {
  const title = promptTitle('😀 '.repeat(50))
  expect(Array.from(title)).toHaveLength(72)
  expect(title).toMatch(/😀…$/u)
  expect(promptTitle('\ud800')).toBe('\ufffd')
})
