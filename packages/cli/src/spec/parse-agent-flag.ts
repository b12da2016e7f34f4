import { TuttiError, parseAgentSpec } from '@tutti/core'

/** Stands between a spec and its own addition to the prompt. */
const separator = ' ++ '

/**
 * `--agent SPEC` or `--agent 'SPEC ++ more words for its prompt'`. The spec is checked here, so that the error names the flag.
 *
 * @throws TuttiError `invalid_argument`.
 */
export function parseAgentFlag(
  text: string,
  field: string,
): { readonly spec: string; readonly promptSuffix: string } {
  const at = text.indexOf(separator)
  const spec = (at < 0 ? text : text.slice(0, at)).trim()
  const promptSuffix = at < 0 ? '' : text.slice(at + separator.length).trim()
  parseAgentSpec(spec, field)
  if (at >= 0 && promptSuffix === '') {
    throw new TuttiError(
      'invalid_argument',
      `${field}: nothing follows "++". Write the words that this agent's prompt ends with.`,
      {
        field,
      },
    )
  }
  return { spec, promptSuffix }
}
