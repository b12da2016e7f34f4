import { create } from '@bufbuild/protobuf'
import pc from 'picocolors'
import stringWidth from 'fast-string-width'
import { ParallelAgentWorkflowStatusUpdateSchema } from '@tutti/proto'
import { describe, expect, test } from 'vitest'
import { createPlainLines } from './plain-lines.ts'
import { canRepaint } from './repainter.ts'
import { renderTable } from './table-view.ts'

const ids = ['bc-01920000-0000-7000-8000-000000000001', 'bc-01920000-0000-7000-8000-000000000002']
const start = 1_000_000

type Child = NonNullable<Parameters<typeof update>[2]>[number]

function update(phase: number, reason = '', children: readonly { [key: string]: unknown }[] = [{}, {}]) {
  return create(ParallelAgentWorkflowStatusUpdateSchema, {
    ensembleId: 'en-1',
    phase,
    reason,
    phases: [{ phase: 1, startedAtMs: BigInt(start) }],
    children: children.map((child, index) => ({
      bcId: ids[index] ?? `bc-${index}`,
      agent: 'command:fix {prompt}',
      status: 4,
      workflowStatus: 1,
      ...(child as object),
    })),
  })
}

const done: Child = {
  status: 2,
  workflowStatus: 2,
  reason: 'completed',
  filesChanged: 2,
  check: { exitCode: 0 },
}
const failed: Child = {
  status: 3,
  workflowStatus: 3,
  reason: 'agent_error',
  headline: 'exit 1\u001b[2J\nfake',
}

describe('plain lines', () => {
  test('one line per change of state', () => {
    let now = start
    const lines = createPlainLines(() => now)
    const shown = [
      lines(update(1)),
      ((now += 500), lines(update(2, '', [{ queuePosition: 2 }, {}]))),
      ((now += 1500), lines(update(2, '', [{ status: 1, headline: 'reading' }, { status: 1 }]))),
      ((now += 1000), lines(update(2, '', [{ status: 1, headline: 'writing' }, { status: 1 }]))),
      ((now += 60_000), lines(update(2, '', [done, failed]))),
      ((now += 100), lines(update(5, 'completed', [done, failed]))),
    ]
    expect(shown.flat().join('\n')).toMatchInlineSnapshot(`
      "   0ms  STARTING
         0ms  agent 1/2  bc-01920000-0000-7000-8000-000000000001  command:fix {prompt}
         0ms  agent 1/2  starting
         0ms  agent 2/2  bc-01920000-0000-7000-8000-000000000002  command:fix {prompt}
         0ms  agent 2/2  starting
       500ms  CHILDREN_RUNNING
       500ms  agent 1/2  queued #2
        2.0s  agent 1/2  working: reading
        2.0s  agent 2/2  working
       1m03s  agent 1/2  done, 2 files changed
       1m03s  agent 1/2  check passed
       1m03s  agent 2/2  agent error: fake
       1m03s  COMPLETED"
    `)
  })

  test('an update that is read later has the time of its event, and one before the first phase none', () => {
    const lines = createPlainLines(() => start + 3_600_000)
    const before = { ...update(0, '', [{ status: 0, workflowStatus: 0 }]), phases: [] }
    const stored = { ...update(2, '', [{ status: 1 }]), atMs: BigInt(start + 2500) }
    expect([...lines(before), ...lines(stored)]).toEqual([
      `   0ms  agent 1/1  ${ids[0]}  command:fix {prompt}`,
      '   0ms  agent 1/1  waiting',
      '  2.5s  CHILDREN_RUNNING',
      '  2.5s  agent 1/1  working',
    ])
  })

  test('a question is said once, with its options and how to answer it', () => {
    const lines = createPlainLines(() => start)
    const question = { questionId: 't/db', text: 'Which\ndatabase?', options: ['sqlite', 'post\u001bgres'] }
    lines(update(2, '', [{ status: 1 }]))
    const asks = update(2, '', [{ status: 1, question }])
    expect(lines(asks)).toEqual([
      `   0ms  agent 1/1  (${ids[0]}) asks: Which\\ndatabase? [sqlite | post\\x1bgres]; answer with: tutti agent answer ${ids[0]} "…"`,
    ])
    expect(lines(asks)).toEqual([])
  })

  test('who stopped it', () => {
    const stopped = { ...update(6, 'stopped_by_user', []), message: 'Somebody stopped it.' }
    expect(createPlainLines(() => start)(stopped)).toEqual([
      '   0ms  ERROR  stopped_by_user: Somebody stopped it.',
    ])
    const here = createPlainLines(
      () => start,
      () => true,
    )
    expect(here(stopped)).toEqual(['   0ms  ERROR  stopped_by_user: You stopped it.'])
  })

  test('the same update again says nothing', () => {
    const lines = createPlainLines(() => start)
    expect(lines(update(2)).length).toBeGreaterThan(0)
    expect(lines(update(2))).toEqual([])
  })
})

test('only a terminal that can move its cursor is drawn over', () => {
  const stream = { isTTY: true, columns: 80, rows: 24, write: () => {} }
  expect(canRepaint(stream, { TERM: 'xterm' })).toBe(true)
  expect(canRepaint(stream, { TERM: 'dumb' })).toBe(false)
  expect(canRepaint({ ...stream, isTTY: false }, { TERM: 'xterm' })).toBe(false)
})

describe('table', () => {
  const paint = pc.createColors(false)
  const frame = { now: start + 65_000, columns: 80, rows: 24, paint }

  test('header, columns and one row per child', () => {
    const rows = renderTable(
      update(2, '', [{ ...done, startedAtMs: BigInt(start), endedAtMs: BigInt(start + 4200) }, failed]),
      frame,
    )
    expect(rows.join('\n')).toMatchInlineSnapshot(`
      "CHILDREN_RUNNING  2/2 ended  1m05s
        #  state            time    files check       now
      ✔ 1  done             4.2s    2     passed      done
      ✖ 2  agent error                                fake"
    `)
  })

  test('before the first phase it starts, and who waits says so instead of its command', () => {
    const rows = renderTable({ ...update(0, '', [{ queuePosition: 2 }]), phases: [] }, frame)
    expect(rows.join('\n')).toMatchInlineSnapshot(`
      "starting  0/1 ended
        #  state            time    files check       now
      · 1  queued #2                                  queued #2"
    `)
  })

  test('an agent that asks says what, and how to answer, below the rows', () => {
    const question = { questionId: 't/db', text: 'Which database?', options: ['sqlite', 'postgres'] }
    expect(renderTable(update(2, '', [{ status: 1, question }]), frame).slice(-2)).toEqual([
      '1 asks: Which database? [sqlite | postgres]',
      `  tutti agent answer ${ids[0]} "…"`,
    ])
  })

  test('the end says its reason where that is not what the phase says', () => {
    expect(renderTable(update(5, 'completed', [done]), frame)[0]).toBe('COMPLETED  1/1 ended  1m05s')
    expect(renderTable(update(6, 'stopped_by_user', [done]), frame)[0]).toContain('1m05s  stopped by user')
  })

  test('an agent whose check failed is not shown as a success', () => {
    const row = renderTable(update(2, '', [{ ...done, check: { exitCode: 1 } }]), frame)[2]
    expect(row).toMatch(/^– 1 {2}done .* failed \(1\)/)
    expect(renderTable(update(2, '', [{ ...done, check: { exitCode: -1 } }]), frame)[2]).toContain('killed')
  })

  test.each([20, 40, 72, 80, 200])('never wider than %d columns', (columns) => {
    const long = { status: 1, headline: '日本語 '.repeat(80) }
    for (const row of renderTable(update(2, '', [long, failed]), { ...frame, columns })) {
      expect(stringWidth(row)).toBeLessThan(Math.max(columns, 44))
    }
  })

  test('never higher than the terminal, those at work first', () => {
    const many = Array.from({ length: 50 }, (_, index) => (index === 49 ? { status: 1 } : done))
    const rows = renderTable(update(2, '', many), { ...frame, rows: 12 })
    expect(rows.length).toBeLessThanOrEqual(11)
    expect(rows.some((row) => row.includes('working'))).toBe(true)
    expect(rows.at(-1)).toContain('and 43 more')
  })

  test('SEC-08 a headline cannot command the terminal', () => {
    const rows = renderTable(update(2, '', [failed]), frame)
    expect(rows.join('')).not.toContain('\u001b')
    expect(rows).toHaveLength(3)
  })
})
