import { parseAgentSpec } from './agent-spec.ts'
import { TuttiError } from './errors.ts'
import { limits } from './limits.ts'

/** What an agent is asked: the words of the turn, then those that belong to the agent. */
export const wholePrompt = (prompt: string, suffix: string): string =>
  suffix === '' ? prompt : `${prompt}\n\n${suffix}`

/**
 * Refuses a prompt that this agent could never be given. Asked before anything is started, as a sandbox is dear.
 *
 * @param prompt with its suffix, see {@link wholePrompt}.
 * @throws TuttiError `invalid_argument`.
 */
export function checkPromptFits(agentSpec: string, prompt: string, field: string): void {
  const spec = parseAgentSpec(agentSpec, field)
  if (spec.kind === 'command' && spec.command.includes('{prompt}')) checkOperand(prompt, field)
}

/** @throws TuttiError `invalid_argument` when a text cannot be a word of a command line. */
export function checkOperand(prompt: string, field: string): void {
  const bytes = new TextEncoder().encode(prompt).byteLength
  const way =
    'Use {prompt_file} instead of {prompt} in the agent, or neither: then the prompt comes on standard input.'
  if (bytes > limits.maxOperandBytes) {
    throw new TuttiError(
      'invalid_argument',
      `The prompt has ${bytes} bytes, more than the ${limits.maxOperandBytes} that {prompt} can put into a command line. ${way}`,
      { field, bytes, limit: limits.maxOperandBytes },
    )
  }
  if (prompt.includes('\0')) {
    throw new TuttiError(
      'invalid_argument',
      `A command line cannot hold the NUL character of the prompt. ${way}`,
      { field },
    )
  }
}
