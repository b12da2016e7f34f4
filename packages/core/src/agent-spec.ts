import { TuttiError } from './errors.ts'

/** What runs a turn: `command:<words>` (any program) or `embedded:<brain>` (our loop), as in `--agent`. */
export type AgentSpec =
  | { readonly kind: 'command'; readonly command: string }
  | { readonly kind: 'embedded'; readonly brain: string }

/** Reads `command:claude -p {prompt}`, `embedded:scripted`, `embedded`. @throws TuttiError `invalid_argument`. */
export function parseAgentSpec(text: string, field = 'agent'): AgentSpec {
  const colon = text.indexOf(':')
  const kind = colon < 0 ? text : text.slice(0, colon)
  const rest = colon < 0 ? '' : text.slice(colon + 1).trim()
  if (kind === 'command' && rest !== '') return { kind, command: rest }
  if (kind === 'embedded') return { kind, brain: rest === '' ? 'auto' : rest }
  throw new TuttiError(
    'invalid_argument',
    `${JSON.stringify(text.slice(0, 80))} is not an agent. Write "command:PROGRAM ARGS", for example "command:claude -p {prompt}", or "embedded:scripted".`,
    { field },
  )
}
