import { expect, test } from 'vitest'
import { outputTail } from './output-tail.ts'

const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}`)

test('the last ten lines, and how many there are more', () => {
  expect(outputTail(`${lines(10).join('\n')}\n`, { width: 80, indent: '' })).toEqual(lines(10))
  const shown = outputTail(lines(13).join('\n'), { width: 80, indent: '  ' })
  expect(shown).toEqual(['… 3 lines not shown', ...lines(13).slice(3)].map((line) => `  ${line}`))
})

test('a first line that says what follows stays', () => {
  const text = ['The command failed.', ...lines(12)].join('\n')
  expect(outputTail(text, { width: 80, indent: '', keepFirst: true })).toEqual([
    'The command failed.',
    '… 2 lines not shown',
    ...lines(12).slice(2),
  ])
})

test('SEC-08 output cannot command the terminal', () => {
  expect(outputTail('a\u001b[2Jb', { width: 80, indent: '' })).toEqual(['a\\x1b[2Jb'])
})
