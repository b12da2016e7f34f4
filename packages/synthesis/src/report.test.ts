import { describe, expect, test } from 'vitest'
import { attempt, failedCheck, passed } from './contract.ts'
import { merge } from './merge.ts'
import { pick } from './pick.ts'
import { mergeReport, type MergeReportRequest } from './report.ts'

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

describe('why a candidate is not in the result', () => {
  const attempts = [attempt(1, failedCheck), attempt(2, failedCheck)]
  const ids = attempts.map(({ bcId }) => bcId)
  const whyOf = (strategy: typeof pick, request: Partial<MergeReportRequest>) => {
    const all = { attempts, equalGroups: [], conflicts: [], included: [], ...request }
    return mergeReport({ ...all, plan: strategy.plan(all) }).left_out.map(({ why }) => why)
  }

  test('the check failed with each: none was chosen', () => {
    const failed = 'Left out: the check fails with it.'
    expect(whyOf(pick, { reason: 'check_failed' })).toEqual([failed, failed])
    expect(whyOf(pick, { reason: 'check_failed', equalGroups: [ids] })).toEqual([failed, failed])
  })

  test('the check failed with all together: nothing more was tried', () => {
    const together = 'None was chosen: the check fails with all 2 attempts together.'
    expect(whyOf(merge, { reason: 'check_failed' })).toEqual([together, together])
    const mixed = [attempt(1, passed), attempt(2, failedCheck)]
    expect(whyOf(merge, { reason: 'check_failed', attempts: mixed })).toEqual([
      'Left out: the check fails with it.',
      'Not tried: the check fails without it already.',
    ])
  })

  test.each([pick, merge])('$name: stopped before it was decided', (strategy) => {
    const stopped = 'None was chosen: it ended before that was decided. Somebody stopped it.'
    const mixed = [attempt(1, passed), attempt(2, failedCheck)]
    expect(whyOf(strategy, { reason: 'stopped_by_user', attempts: mixed })).toEqual([stopped, stopped])
  })

  test('an earlier alternative failed the check, a later one was not needed', () => {
    const three = [...attempts, attempt(3, failedCheck)]
    expect(whyOf(pick, { reason: 'completed', attempts: three, included: [ids[1]!] })).toEqual([
      'Left out: the check fails with it.',
      'Another attempt was chosen.',
    ])
  })
})
