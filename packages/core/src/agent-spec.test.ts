import { expect, test } from 'vitest'
import { parseAgentSpec } from './agent-spec.ts'

test.for([
  ['command:claude -p {prompt}', { kind: 'command', command: 'claude -p {prompt}' }],
  ['command: ./run.sh a:b ', { kind: 'command', command: './run.sh a:b' }],
  ['embedded', { kind: 'embedded', brain: 'auto' }],
  ['embedded:', { kind: 'embedded', brain: 'auto' }],
  ['embedded:scripted', { kind: 'embedded', brain: 'scripted' }],
  ['embedded:openai-compatible/org/m', { kind: 'embedded', brain: 'openai-compatible/org/m' }],
  [`command:sh -c 'echo "it"' "don't"`, { kind: 'command', command: `sh -c 'echo "it"' "don't"` }],
] as const)('%j', ([text, spec]) => {
  expect(parseAgentSpec(text)).toEqual(spec)
})

test.for([
  '',
  'command',
  'command:',
  'command:  ',
  'claude',
  'Command:x',
  ':x',
  'embedded2:x',
  `x${'y'.repeat(1000)}`,
])('%j is refused with its field and an example', (text) => {
  expect(() => parseAgentSpec(text, 'children[2].agent')).toThrow(
    expect.objectContaining({ code: 'invalid_argument', detail: { field: 'children[2].agent' } }),
  )
  try {
    parseAgentSpec(text)
  } catch (error) {
    expect((error as Error).message).toContain('command:claude -p {prompt}')
    expect((error as Error).message.length).toBeLessThan(300)
  }
})

test.for([
  ['command:foo "unbalanced', /foo \\"unbalanced.* has a " without an end/],
  ["command:echo don't", /has a ' without an end/],
  ['embedded:foo', /"embedded:foo" has no brain.*embedded:scripted/],
  ['embedded:anthropic/', /embedded:anthropic\/MODEL/],
  ['embedded:mars/x', /has no brain/],
] as const)('%j is refused with what is wrong in it', ([text, words]) => {
  expect(() => parseAgentSpec(text, 'spec.agents[0].spec')).toThrow(
    expect.objectContaining({
      code: 'invalid_argument',
      detail: { field: 'spec.agents[0].spec' },
      message: expect.stringMatching(words),
    }),
  )
})
