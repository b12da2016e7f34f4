import { describe, expect, test } from 'vitest'
import { buildCommandLine } from './command-line.ts'

describe('the command line of a command agent', () => {
  test.each([
    [
      'claude -p {prompt} --permission-mode acceptEdits',
      ['claude', '-p', 'a b', '--permission-mode', 'acceptEdits'],
    ],
    ['tool "--task={prompt} now"', ['tool', '--task=a b now']],
    ['tool \'two words\' ""', ['tool', 'two words', '']],
    ['tool --file {prompt_file}', ['tool', '--file', '/h/prompt']],
    ['tool {prompt}{prompt_file}', ['tool', 'a b/h/prompt']],
    ['tool $(id) `id` ; rm *', ['tool', '$(id)', '`id`', ';', 'rm', '*']],
  ])('splits %s', (command, argv) => {
    expect(buildCommandLine(command, 'a b', '/h/prompt').argv).toEqual(argv)
  })

  test('puts a prompt in as it is, also one that looks like a placeholder or an option', () => {
    for (const prompt of ['{prompt_file}', '{prompt}', 'it\'s "x" $(id) $& $1', 'a\nb', '--help', '']) {
      expect(buildCommandLine('tool -p {prompt}', prompt, '/h/prompt').argv).toEqual(['tool', '-p', prompt])
    }
  })

  test('sends the prompt to standard input when no word takes it', () => {
    expect(buildCommandLine('tool', 'a', '/h/prompt').promptOnStdin).toBe(true)
    expect(buildCommandLine('tool {prompt}', 'a', '/h/prompt').promptOnStdin).toBe(false)
    expect(buildCommandLine('tool {prompt_file}', 'a', '/h/prompt').promptOnStdin).toBe(false)
  })

  test('refuses a prompt that no command line can hold, and says the way out', () => {
    const large = 'é'.repeat(60 << 10)
    const refusal = expect.objectContaining({
      code: 'invalid_argument',
      message: expect.stringMatching(/\{prompt_file\}.*standard input/),
    })
    expect(() => buildCommandLine('tool {prompt}', large, '/h/prompt')).toThrow(refusal)
    expect(() => buildCommandLine('tool {prompt}', 'a\0b', '/h/prompt')).toThrow(refusal)
    expect(buildCommandLine('tool {prompt_file}', large, '/h/prompt').argv).toEqual(['tool', '/h/prompt'])
  })

  test('refuses a command without a program', () => {
    expect(() => buildCommandLine('""', 'a', '/h/prompt')).toThrow(
      expect.objectContaining({ code: 'invalid_argument' }),
    )
  })
})
