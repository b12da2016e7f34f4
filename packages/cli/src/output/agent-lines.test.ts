import { create } from '@bufbuild/protobuf'
import { AgentSchema, BackgroundComposerStatus, CloudAgentWorkflowStatus } from '@tutti/proto'
import { expect, test } from 'vitest'
import { agentDetails, agentTable } from './agent-lines.ts'
import { eventText } from './event-text.ts'

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

const inError = (reason: string, queuedTurns: number, paused = false) =>
  create(AgentSchema, {
    bcId: 'bc-1',
    workflowStatus: CloudAgentWorkflowStatus.ERROR,
    state: { reason, queuedTurns, paused },
  })
const recover = ' "tutti agent recover bc-1" makes a sandbox alone, to see whether it stays.'

test.each([
  [
    inError('sandbox_lost', 2),
    `2 turns wait: a message or "tutti agent resume bc-1" goes on with what waits, in a new sandbox.${recover}`,
  ],
  [inError('sandbox_lost', 0), `A message goes on in a new sandbox.${recover}`],
  [
    inError('sandbox_lost', 1, true),
    `1 turn waits: "tutti agent resume bc-1" goes on with what waits, in a new sandbox.${recover}`,
  ],
  [
    inError('agent_error', 1),
    '1 turn waits: a message or "tutti agent resume bc-1" goes on with what waits.',
  ],
])(
  'what moves an agent on that stands in ERROR: $state.reason, $state.queuedTurns waiting',
  (agent, text) => {
    expect(agentDetails(agent, 0).at(-1)).toBe(text)
  },
)

test('the list and the log say it too, and only of agents that stand still', () => {
  const on = 'a message or "tutti agent resume ID" goes on with what waits'
  expect(agentTable([inError('sandbox_lost', 2)], 0).slice(1)).toEqual([
    expect.stringContaining('ERROR (sandbox_lost), 2 waiting'),
    '',
    `Where turns wait in ERROR, ${on}; "tutti agent get ID" says more.`,
  ])
  expect(agentTable([inError('agent_error', 0)], 0)).toHaveLength(2)
  const status = { type: 'status', paused: false, queued: 2, hadSandbox: true } as const
  expect(eventText({ ...status, status: 'ERROR', reason: 'sandbox_lost' })?.text).toContain(
    `waiting turns: 2; ${on}`,
  )
  expect(eventText({ ...status, status: 'RUNNING' })?.text).not.toContain(on)
})

test('what the stores have lost of an agent is said of that agent, in a list below all', () => {
  const missing = 'Its settings: Blob sha256_0 is gone; put it back.\u001b'
  const partial = create(AgentSchema, { bcId: 'bc-1', title: 'Fix', state: { missing } })
  const lines = agentTable([partial, create(AgentSchema, { bcId: 'bc-2', state: {} })], 0)
  const said = 'is not whole. Its settings: Blob sha256_0 is gone; put it back.\\x1b'
  expect(lines.slice(1)).toEqual([
    expect.stringMatching(/^bc-1 .*Fix$/),
    expect.stringMatching(/^bc-2/),
    '',
    `bc-1 ${said}`,
  ])
  expect(agentDetails(partial, 0).at(-1)).toBe(`It ${said}`)
})

test('an agent without a sandbox yet has none', () => {
  const state = { incarnation: 1 }
  const shown = (status: BackgroundComposerStatus) =>
    agentDetails(create(AgentSchema, { bcId: 'bc-1', status, state }), 0).filter((line) =>
      line.startsWith('sandbox'),
    )
  expect(shown(BackgroundComposerStatus.CREATING)).toEqual([
    expect.stringMatching(/none yet: it waits for a slot/),
  ])
  expect(shown(BackgroundComposerStatus.RUNNING)).toEqual([expect.stringMatching(/number 1/)])
})
