/** Who thinks for an embedded agent: `auto` is the first model that is configured on the worker. */
export type BrainSpec =
  | { readonly provider: 'auto' | 'scripted' }
  | { readonly provider: 'anthropic' | 'openai' | 'openai-compatible'; readonly model: string }

/** Reads what stands behind `embedded:`; undefined when it is no brain. Empty means `auto`. */
export function parseBrain(text: string): BrainSpec | undefined {
  if (text === '' || text === 'auto') return { provider: 'auto' }
  if (text === 'scripted') return { provider: 'scripted' }
  const [, provider, model] = /^(anthropic|openai|openai-compatible)\/(.+)$/.exec(text) ?? []
  if (model === undefined) return undefined
  return { provider: provider as 'anthropic' | 'openai' | 'openai-compatible', model }
}
