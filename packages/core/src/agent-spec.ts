import { parseBrain } from './brain-spec.ts'
import { TuttiError } from './errors.ts'

/** What runs a turn: `command:<words>` (any program) or `embedded:<brain>` (our loop), as in `--agent`. */
export type AgentSpec =
  | { readonly kind: 'command'; readonly command: string }
  | { readonly kind: 'embedded'; readonly brain: string }

/**
 * Reads `command:claude -p {prompt}`, `embedded:scripted`, `embedded`.
 *
 * @throws TuttiError `invalid_argument` that names the spec: another kind, no program, a quote without its end, an unknown brain.
 */
export function parseAgentSpec(text: string, field = 'agent'): AgentSpec {
  const colon = text.indexOf(':')
  const kind = colon < 0 ? text : text.slice(0, colon)
  const rest = colon < 0 ? '' : text.slice(colon + 1).trim()
  const shown = JSON.stringify(text.slice(0, 80))
  if (kind === 'command' && rest !== '') {
    const quote = openQuote(rest)
    if (quote === undefined) return { kind, command: rest }
    throw new TuttiError(
      'invalid_argument',
      `${shown} has a ${quote} without an end. Close it, or put the other kind of quotes around it.`,
      { field },
    )
  }
  if (kind === 'embedded') {
    if (parseBrain(rest)) return { kind, brain: rest === '' ? 'auto' : rest }
    throw new TuttiError(
      'invalid_argument',
      `${shown} has no brain that is known. Write embedded:auto, embedded:scripted, embedded:anthropic/MODEL, embedded:openai/MODEL or embedded:openai-compatible/MODEL.`,
      { field },
    )
  }
  throw new TuttiError(
    'invalid_argument',
    `${shown} is not an agent. Write "command:PROGRAM ARGS", for example "command:claude -p {prompt}", or "embedded:scripted".`,
    { field },
  )
}

/** The quote that a command begins and does not end. There is no shell, so a backslash is a letter like any other. */
function openQuote(command: string): string | undefined {
  let open: string | undefined
  for (const char of command) {
    if (char === open) open = undefined
    else if (open === undefined && (char === '"' || char === "'")) open = char
  }
  return open
}
