import { initialAgentState } from '@tutti/core'
import { expect, test } from 'vitest'
import { agentDetails, ensembleDetails } from './operator-text.ts'

const agent = { bcId: 'bc-1', owner: 'local', repository: 'demo', ensembleId: 'en-1' } as const
const ensemble = { ensembleId: 'en-1', owner: 'local', repository: 'demo' } as const
const turn = { turnId: 't-1', promptBlobId: 'sha256_0', source: 'API' } as const

test('an agent at work: where it stands, and what to do about it', () => {
  const state = { ...initialAgentState, status: 'RUNNING', current: turn, queue: [turn, turn] } as const
  const text = agentDetails(agent, state, {
    turns: 3,
    waitsForAnswer: false,
    incarnation: 2,
    stage: 'waiting',
  })
  expect(text).toMatch(/^\*\*RUNNING\*\*\n\n- agent: `bc-1` of local\n/)
  expect(text).toContain('- turn: 3, at work\n- waiting turns: 2\n- sandbox: none yet: waits for a slot')
  expect(text).toContain('number 2 of this agent')
  expect(text).toContain('`tutti agent stop bc-1`')
})

test('an agent that asks: that it waits, and how to answer', () => {
  const state = { ...initialAgentState, status: 'RUNNING', current: turn } as const
  const progress = { turns: 1, waitsForAnswer: true, incarnation: 1, stage: 'ready' } as const
  const text = agentDetails(agent, state, progress)
  expect(text).toContain('- turn: 1, waits for an answer\n')
  expect(text).toContain('`tutti agent get bc-1`; to answer: `tutti agent answer bc-1 "…"`')
  expect(agentDetails(agent, { ...state, ending: 'paused' }, progress)).toContain(
    'turn: 1, being ended: paused',
  )
})

test('an agent at rest says why, and offers no stop', () => {
  const state = { ...initialAgentState, status: 'ERROR', paused: true, reason: 'stalled' } as const
  const text = agentDetails(agent, state, { turns: 1, waitsForAnswer: false, incarnation: 1, stage: 'none' })
  expect(text).toContain('**ERROR, paused** (stalled)')
  expect(text).toContain('- turn: 1, none at work\n- waiting turns: 0\n- sandbox: none\n')
  expect(text).not.toContain('agent stop')
})

test('an ensemble: one row for each child, and how to end it while it goes on', () => {
  const children = [{ bcId: 'bc-1', title: 'a | b', state: 'running' }]
  const text = ensembleDetails(ensemble, 'CHILDREN_RUNNING', undefined, children)
  // A table of markdown needs the empty line before it.
  expect(text).toContain(
    '\n\n| agent | task | state |\n| --- | --- | --- |\n| `bc-1` | a \\| b | running |\n',
  )
  expect(text).toContain('`tutti ensemble stop en-1`')
  expect(ensembleDetails(ensemble, 'ERROR', 'timeout', children)).not.toContain('stop')
})
