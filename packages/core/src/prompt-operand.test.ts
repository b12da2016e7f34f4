import { expect, test } from 'vitest'
import { limits } from './limits.ts'
import { checkPromptFits, wholePrompt } from './prompt-operand.ts'

const largest = 'x'.repeat(limits.maxOperandBytes)

test.for([
  ['command:a {prompt}', largest],
  ['command:a {prompt_file}', `${largest}x`],
  ['command:a', `${largest}x`],
  ['embedded', `${largest}x`],
] as const)('%s takes it', ([spec, prompt]) => {
  expect(() => checkPromptFits(spec, prompt, 'prompt')).not.toThrow()
})

test.for([`${largest}x`, 'a\0b', wholePrompt(largest, 'x')])(
  'what cannot be a word of a command line is refused with the way out',
  (prompt) => {
    expect(() => checkPromptFits('command:a --task={prompt}', prompt, 'spec.prompt')).toThrow(
      expect.objectContaining({
        code: 'invalid_argument',
        detail: expect.objectContaining({ field: 'spec.prompt' }),
        message: expect.stringContaining('{prompt_file}'),
      }),
    )
  },
)
