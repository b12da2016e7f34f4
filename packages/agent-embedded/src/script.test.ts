import { describe, expect, test } from 'vitest'
import { parseScript } from './script.ts'

describe('a script in a prompt', () => {
  test('is every line with a word of it, between text for people', () => {
    const prompt = [
      'Please fix the parser. Note: this line is no action.',
      'todo: read; fix ; test',
      'think: it is the regex',
      'run: npm test',
      'try: false',
      'write: a.txt hello world',
      'write: b/c.txt <<EOF',
      'run: not an action',
      '',
      '  indented',
      'EOF',
      'edit: a.txt | hello | good bye',
      'edit: b/c.txt <<END',
      'run: not an action',
      '=======',
      'new',
      'END',
      'ask: Which? | a | b',
      'sleep: 0.5',
      'read: a.txt',
      'script: more.txt',
      'say: done: it works',
      'echo-context:',
      'fail: no way',
    ].join('\n')
    expect(parseScript(prompt)).toEqual([
      { do: 'todo', items: ['read', 'fix', 'test'] },
      { do: 'think', text: 'it is the regex' },
      { do: 'run', command: 'npm test', mayFail: false },
      { do: 'run', command: 'false', mayFail: true },
      { do: 'write', path: 'a.txt', content: 'hello world\n' },
      { do: 'write', path: 'b/c.txt', content: 'run: not an action\n\n  indented\n' },
      { do: 'edit', path: 'a.txt', old: 'hello', new: 'good bye' },
      { do: 'edit', path: 'b/c.txt', old: 'run: not an action\n', new: 'new\n' },
      { do: 'ask', question: 'Which?', options: ['a', 'b'] },
      { do: 'sleep', seconds: 0.5 },
      { do: 'read', path: 'a.txt' },
      { do: 'script', path: 'more.txt' },
      { do: 'say', text: 'done: it works' },
      { do: 'echo-context' },
      { do: 'fail', message: 'no way' },
    ])
  })

  test('is only the fenced block or the JSON line when there is one', () => {
    expect(parseScript('run: no\n```tutti-script\nrun: yes\n```\nrun: no')).toEqual([
      { do: 'run', command: 'yes', mayFail: false },
    ])
    expect(parseScript('run: no\n@script:[{"do":"run","command":"yes\\nand"}]')).toEqual([
      { do: 'run', command: 'yes\nand', mayFail: false },
    ])
  })

  test('is empty for a task in plain words', () => {
    expect(parseScript('Fix the tests.\n- run the linter\nWrite: carefully')).toEqual([])
  })

  test.each([
    'write: a <<EOF\nno end',
    'sleep: soon',
    'sleep: -1',
    'edit: a | b',
    '@script:{',
    '@script:[{"do":"dance"}]',
  ])('names what it cannot read: %j', (prompt) => {
    expect(() => parseScript(prompt)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })
})
