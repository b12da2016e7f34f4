import { expect, test } from 'vitest'
import { attempt, failedCheck } from './contract.ts'
import { merge } from './merge.ts'
import { mergeReport } from './report.ts'

test('ENS-01 ENS-05 ENS-06 tells what became of every attempt', () => {
  const attempts = [
    attempt(1),
    attempt(2),
    attempt(3, { status: 'ERROR', reason: 'agent_error', detail: 'exit 1' }),
    attempt(4, failedCheck),
    attempt(5, { commit: '0'.repeat(40), reason: 'nothing_to_deliver' }),
  ]
  const [first, second, third, fourth, fifth] = attempts.map(({ bcId }) => bcId)
  const equalGroups = [[first!, second!], [fourth!]]
  const report = mergeReport({
    attempts,
    equalGroups,
    plan: merge.plan({ attempts, equalGroups }),
    conflicts: [{ path: 'a', kind: 'content', line: 10, base: 'b', versions: [{ bcId: first!, text: 'x' }] }],
    included: [first!],
  })
  expect(report).toEqual({
    conflicts: [{ path: 'a', kind: 'content', line: 10, base: 'b', versions: [{ bc_id: first, text: 'x' }] }],
    equal_groups: [[first, second]],
    failures: [
      { bc_id: third, reason: 'agent_error', message: 'exit 1', log_command: `tutti agent events ${third}` },
      {
        bc_id: fourth,
        reason: 'check_failed',
        message: 'Left out: the check fails with it.',
        log_command: `tutti agent events ${fourth}`,
      },
    ],
    left_out: [
      { bc_id: third, why: 'The agent ended with an error.' },
      { bc_id: fourth, why: 'Left out: the check fails with it.' },
      { bc_id: fifth, why: 'The work ended without a change, so there is nothing to deliver.' },
    ],
  })
})
