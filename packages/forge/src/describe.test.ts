import type { Attempt } from '@tutti/core'
import { expect, test } from 'vitest'
import { cutBody, describeEnsemble } from './describe.ts'

const attempt = (index: number, change: Partial<Attempt> = {}): Attempt => ({
  bcId: `bc-${index}`,
  status: 'IDLE',
  reason: 'completed',
  base: '0',
  commit: String(index),
  filesChanged: index,
  summary: '',
  detail: '',
  ...change,
})

test('ENS-05 describes attempts, check, conflicts and failures', () => {
  const { title, body } = describeEnsemble({
    prompt: '\nFix the parser\nand its tests',
    strategy: 'merge',
    attempts: [
      attempt(1, { summary: 'Done', check: { exitCode: 0, tail: '', durationMs: 1 } }),
      attempt(2),
      attempt(3, { status: 'ERROR', reason: 'agent_error' }),
    ],
    included: ['bc-1'],
    report: {
      conflicts: [
        {
          path: 'app.ts',
          kind: 'content',
          line: 10,
          base: 'old\n',
          versions: [{ bc_id: 'bc-1', text: 'new\n' }],
        },
      ],
      equal_groups: [['bc-1', 'bc-2']],
      failures: [
        { bc_id: 'bc-3', reason: 'agent_error', message: 'boom', log_command: 'tutti agent events bc-3' },
      ],
      left_out: [{ bc_id: 'bc-3', why: 'The agent ended with an error.' }],
    },
    check: { command: 'npm test', result: { exitCode: 0, tail: '', durationMs: 1 } },
  })
  expect(title).toBe('Fix the parser')
  for (const line of [
    '- ` bc-1 `: in this change (1 file, own check passed)\n  ` Done `',
    '- ` bc-2 `: the same as one in this change (2 files)',
    '- ` bc-3 `: left out. The agent ended with an error. (3 files)',
    '2 attempts made the same change: ` bc-1 `, ` bc-2 `.',
    '` npm test ` passed on the combined tree.',
    '### ` app.ts `, line 10 (content)',
    'Base:\n\n```text\nold\n```',
    '- ` bc-3 `: The agent ended with an error. ` boom `',
  ]) {
    expect(body).toContain(line)
  }
})

test('SEC-11 lets nothing from outside out of its code', () => {
  const hostile =
    '`` <img src=x onerror=alert(1)> [a](javascript:b) @everyone fixes #1 \u202e\u001b]8;;\n```\n# Title'
  const { title, body } = describeEnsemble({
    prompt: hostile,
    strategy: hostile,
    attempts: [attempt(1, { summary: hostile })],
    included: ['bc-1'],
    report: {
      conflicts: [
        {
          path: hostile,
          kind: 'content',
          line: 1,
          base: hostile,
          versions: [{ bc_id: 'bc-1', text: hostile }],
        },
      ],
      equal_groups: [],
      failures: [],
      left_out: [],
    },
    check: { command: hostile, result: { exitCode: 2, tail: hostile, durationMs: 1 } },
  })
  // What is left after taking all code away is ours alone.
  const outside = body.replaceAll(/^(`{3,})text\n.*?\n\1$/gms, '').replaceAll(/(`+) .*? \1(?!`)/g, '')
  expect(outside).not.toMatch(/img|javascript|everyone|fixes|# Title|`/)
  expect(body.replaceAll('\n', '')).toMatch(/^[^\p{Cc}\p{Cf}]+$/u)
  expect(title).toMatch(/^[^\p{Cc}\p{Cf}]+$/u)
})

test('a cut body closes its code', () => {
  const body = cutBody(`intro\n\n\`\`\`\`text\n${'line\n'.repeat(20_000)}\`\`\`\`\n`)
  expect(body.length).toBeLessThanOrEqual(60_000)
  expect(body).toMatch(/\nline\n````\n\n\(The description was cut here/)
})
