import { checkOperand, TuttiError } from '@tutti/core'
import { parseArgsStringToArgv } from 'string-argv'

export interface CommandLine {
  readonly argv: readonly string[]
  /** The prompt goes to standard input because no word takes it. */
  readonly promptOnStdin: boolean
}

/**
 * Splits the command of an agent spec into words (quotes group, there is no shell) and puts the prompt in.
 *
 * `{prompt}` inside any word becomes the prompt's text, `{prompt_file}` the path of a file that holds it. The prompt is
 * substituted after the split, so quotes, newlines or `$()` in it stay text and never make a second word.
 *
 * @throws TuttiError `invalid_argument` when there is no program, or when the prompt cannot be a word of a command line.
 */
export function buildCommandLine(command: string, prompt: string, promptFile: string): CommandLine {
  const words = parseArgsStringToArgv(command)
  if (words.length === 0 || words[0] === '') {
    throw new TuttiError(
      'invalid_argument',
      'The command agent has no program. Write "command:PROGRAM ARGS".',
      {
        field: 'agent',
      },
    )
  }
  const takesText = words.some((word) => word.includes('{prompt}'))
  const takesFile = words.some((word) => word.includes('{prompt_file}'))
  if (takesText) checkOperand(prompt, 'agent')
  return {
    argv: words.map((word) =>
      word.replaceAll(/\{prompt(_file)?\}/g, (_match, file: string | undefined) =>
        file ? promptFile : prompt,
      ),
    ),
    promptOnStdin: !takesText && !takesFile,
  }
}
