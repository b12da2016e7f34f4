import { systemClock } from '@tutti/core'
import { describe, expect, test } from 'vitest'
import { chooseBrain, type BrainEnv } from './brain.ts'

const name = (spec: string, env: BrainEnv = {}) => chooseBrain(spec, env, systemClock).name

describe('the brain of an embedded agent', () => {
  test('is the first one that is configured', () => {
    const local = { TUTTI_MODEL_BASE_URL: 'http://127.0.0.1:1/v1', TUTTI_MODEL: 'm' }
    expect(name('auto', { ANTHROPIC_API_KEY: 'k' })).toMatch(/^anthropic\/claude-/)
    expect(name('auto', { ANTHROPIC_API_KEY: 'k', TUTTI_MODEL: 'claude-x' })).toBe('anthropic/claude-x')
    expect(name('auto', { ANTHROPIC_API_KEY: 'k', ...local })).toBe('openai-compatible/m')
    expect(name('auto', { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', TUTTI_MODEL: 'm' })).toBe('openai/m')
    expect(name('auto', { OPENAI_API_KEY: 'k', TUTTI_MODEL: 'm' })).toBe('openai/m')
  })

  test('is the one that the spec names, slashes in the model included', () => {
    expect(name('scripted', { ANTHROPIC_API_KEY: 'k' })).toBe('scripted')
    expect(name('anthropic/claude-y', { ANTHROPIC_API_KEY: 'k', TUTTI_MODEL: 'other' })).toBe(
      'anthropic/claude-y',
    )
    expect(name('openai-compatible/org/m', { TUTTI_MODEL_BASE_URL: 'http://127.0.0.1:1' })).toBe(
      'openai-compatible/org/m',
    )
  })

  test.each<[string, BrainEnv, string]>([
    ['auto', {}, 'ANTHROPIC_API_KEY'],
    ['auto', { TUTTI_MODEL_BASE_URL: 'http://127.0.0.1:1' }, 'TUTTI_MODEL'],
    ['anthropic/x', {}, 'ANTHROPIC_API_KEY'],
    ['openai/x', {}, 'OPENAI_API_KEY'],
    ['openai-compatible/x', {}, 'TUTTI_MODEL_BASE_URL'],
  ])('is never guessed: %s with %j', (spec, env, variable) => {
    expect(() => name(spec, env)).toThrow(
      expect.objectContaining({
        code: 'failed_precondition',
        message: expect.stringMatching(new RegExp(`${variable}[^]*embedded:scripted`)),
      }),
    )
  })

  test('refuses a name that it does not know', () => {
    for (const spec of ['gpt', 'mars/x', 'anthropic/', '/x']) {
      expect(() => name(spec)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
    }
  })
})
