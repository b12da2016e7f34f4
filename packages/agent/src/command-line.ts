import { TuttiError } from '@tutti/core'
import { parseArgsStringToArgv } from 'string-argv'

/** One word of argv may be 128 KiB on Linux (MAX_ARG_STRLEN); below that with room for what stands around the prompt. */
const maxOperandBytes = 100 << 10

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
  if (takesText) assertOperand(prompt)
  return {
    argv: words.map((word) =>
      word.replaceAll(/\{prompt(_file)?\}/g, (_match, file: string | undefined) =>
        file ? promptFile : prompt,
      ),
    ),
    promptOnStdin: !takesText && !takesFile,
  }
}

function assertOperand(prompt: string): void {
  const bytes = Buffer.byteLength(prompt)
  const way = 'Use {prompt_file} instead of {prompt}, or neither: then the prompt comes on standard input.'
  if (bytes > maxOperandBytes) {
    throw new TuttiError(
      'invalid_argument',
      `The prompt has ${bytes} bytes, more than the ${maxOperandBytes} that {prompt} can put into a command line. ${way}`,
      { field: 'agent', bytes, limit: maxOperandBytes },
    )
  }
  if (prompt.includes('\0')) {
    throw new TuttiError(
      'invalid_argument',
      `A command line cannot hold the NUL character of the prompt. ${way}`,
      {
        field: 'agent',
      },
    )
  }
}
