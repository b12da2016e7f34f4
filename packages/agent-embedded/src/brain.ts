import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import { parseBrain, TuttiError, type Clock } from '@tutti/core'
import { createScriptedModel } from './scripted-model.ts'

export interface Brain {
  /** As the agent names it in `turn_started`. */
  readonly name: string
  /** First letters of every `modelCallId`. */
  readonly callPrefix: string
  readonly model: LanguageModelV4
  /** Never in an event or an error, also when a provider repeats them. */
  readonly secrets: readonly string[]
}

export type BrainEnv = Readonly<Record<string, string | undefined>>

const defaultAnthropicModel = 'claude-sonnet-4-5'
const openaiBaseUrl = 'https://api.openai.com/v1'

/**
 * The brain of `embedded:BRAIN`: `scripted`, `anthropic/MODEL`, `openai/MODEL`, `openai-compatible/MODEL` or `auto`. `auto` takes
 * the first that is configured: TUTTI_MODEL_BASE_URL (said to Tutti alone, so it is meant), ANTHROPIC_API_KEY, OPENAI_BASE_URL or
 * OPENAI_API_KEY. It never falls back to `scripted`: work that nobody thought about must be asked for.
 *
 * Keys are read from the worker's environment and stay there. Each goes to its own address only: OPENAI_API_KEY is never sent
 * to TUTTI_MODEL_BASE_URL, which has TUTTI_MODEL_API_KEY.
 *
 * @throws TuttiError `failed_precondition` that names what to set; `invalid_argument` for what is no brain.
 */
export function chooseBrain(spec: string, env: BrainEnv, clock: Clock): Brain {
  const brain = parseBrain(spec)
  switch (brain?.provider) {
    case 'scripted':
      return { name: 'scripted', callPrefix: 'scripted-', model: createScriptedModel({ clock }), secrets: [] }
    case 'auto':
      return chooseConfigured(env)
    case 'anthropic':
      return anthropic(brain.model, env)
    case 'openai':
      return openai(brain.model, env)
    case 'openai-compatible':
      return compatible(brain.model, env)
    case undefined:
      throw new TuttiError('invalid_argument', `"${spec}" is not a brain.`, { field: 'agent' })
  }
}

function chooseConfigured(env: BrainEnv): Brain {
  const modelId = env['TUTTI_MODEL']
  if (env['TUTTI_MODEL_BASE_URL']) return compatible(modelId, env)
  if (env['ANTHROPIC_API_KEY']) return anthropic(modelId ?? defaultAnthropicModel, env)
  if (env['OPENAI_BASE_URL'] || env['OPENAI_API_KEY']) return openai(modelId, env)
  throw missing(
    'No model is configured. Set ANTHROPIC_API_KEY, or TUTTI_MODEL_BASE_URL and TUTTI_MODEL for an OpenAI-compatible server',
  )
}

function anthropic(modelId: string, env: BrainEnv): Brain {
  const apiKey = env['ANTHROPIC_API_KEY']
  if (!apiKey) throw missing('Set ANTHROPIC_API_KEY')
  const baseURL = versioned(env['ANTHROPIC_BASE_URL'])
  const provider = createAnthropic({ apiKey, ...(baseURL ? { baseURL } : {}) })
  return { name: `anthropic/${modelId}`, callPrefix: 'model-', model: provider(modelId), secrets: [apiKey] }
}

/** Other programs read ANTHROPIC_BASE_URL without the version that this library wants; both forms mean the same. */
function versioned(url: string | undefined): string | undefined {
  return url && URL.canParse(url) && new URL(url).pathname === '/' ? new URL('/v1', url).href : url
}

function openai(modelId: string | undefined, env: BrainEnv): Brain {
  const apiKey = env['OPENAI_API_KEY']
  const baseURL = env['OPENAI_BASE_URL'] || openaiBaseUrl
  if (!apiKey && baseURL === openaiBaseUrl)
    throw missing('Set OPENAI_API_KEY, or OPENAI_BASE_URL for another server')
  return overHttp('openai', modelId, baseURL, apiKey)
}

function compatible(modelId: string | undefined, env: BrainEnv): Brain {
  const baseURL = env['TUTTI_MODEL_BASE_URL']
  if (!baseURL) throw missing('Set TUTTI_MODEL_BASE_URL, for example http://127.0.0.1:11434/v1')
  return overHttp('openai-compatible', modelId, baseURL, env['TUTTI_MODEL_API_KEY'])
}

function overHttp(
  name: string,
  modelId: string | undefined,
  baseURL: string,
  apiKey: string | undefined,
): Brain {
  if (!modelId) throw missing('Set TUTTI_MODEL to the name of the model')
  const provider = createOpenAICompatible({
    name,
    baseURL,
    includeUsage: true,
    ...(apiKey ? { apiKey } : {}),
  })
  return {
    name: `${name}/${modelId}`,
    callPrefix: 'model-',
    model: provider(modelId),
    secrets: apiKey ? [apiKey] : [],
  }
}

function missing(what: string): TuttiError {
  return new TuttiError(
    'failed_precondition',
    `${what} in the worker's environment, or use embedded:scripted, which follows a script and needs no model.`,
    { field: 'agent' },
  )
}
