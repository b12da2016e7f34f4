import { create } from '@bufbuild/protobuf'
import { AgentSchema } from '@tutti/proto'
import { expect, test } from 'vitest'
import { agentDetails } from './agent-lines.ts'

test('an agent that asks: the question, its options and default, and how to answer', () => {
  const question = {
    questionId: 't/db',
    text: 'Which database?',
    options: ['sqlite', 'post\u001bgres'],
    defaultAnswer: 'sqlite',
  }
  const lines = agentDetails(create(AgentSchema, { bcId: 'bc-1', state: { question } }), 0)
  expect(lines.slice(-5)).toEqual([
    'It asks: Which database?',
    '  - sqlite',
    '  - post\\x1bgres',
    'By default: sqlite',
    'Answer with: tutti agent answer bc-1 "…"',
  ])
})

test('an agent that failed: what the failure said, with control characters made visible', () => {
  const detail = 'The setup command ended with exit code 1.\nno \u001b[2Jcache\n'
  expect(agentDetails(create(AgentSchema, { detail }), 0).at(-1)).toBe(
    'The setup command ended with exit code 1.\nno \\x1b[2Jcache',
  )
})
