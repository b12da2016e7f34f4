import { create } from '@bufbuild/protobuf'
import type { MessageInitShape } from '@bufbuild/protobuf'
import pc from 'picocolors'
import stringWidth from 'fast-string-width'
import { EnsembleSchema, SynthesisSchema } from '@tutti/proto'
import { describe, expect, test } from 'vitest'
import type { SummaryOptions } from './summary-options.ts'
import { renderSummary } from './summary.ts'

const first = 'bc-01920000-0000-7000-8000-000000000001'
const second = 'bc-01920000-0000-7000-8000-000000000002'
const output = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join('')

function summary(ensemble: MessageInitShape<typeof EnsembleSchema>, options: Partial<SummaryOptions> = {}) {
  return renderSummary(create(EnsembleSchema, { phase: 5, reason: 'completed', ...ensemble }), {
    paint: pc.createColors(false),
    width: 80,
    command: (words) => `tutti ${words}`,
    next: [],
    ...options,
  })
}

const failed = {
  phase: 6,
  reason: 'all_children_failed',
  attempts: [first, second].map((bcId) => ({ bcId, reason: 'setup_failed', workflowStatus: 3 })),
  report: {
    failures: [first, second].map((bcId) => ({
      bcId,
      reason: 'setup_failed',
      message: `The setup command ended with exit code 4.\n${output(11)}the cause, which is said in a sentence that is longer than this terminal is wide\nA complete log can be found elsewhere`,
    })),
  },
}

test('what the stores have lost of it is said', () => {
  expect(summary({ missing: 'Its result: gone; put it back.' })).toContain(
    'It is not whole. Its result: gone; put it back.',
  )
})

test('a failure shows the end of its output, once for those that failed alike, and the command that shows more', () => {
  expect(summary(failed).join('\n')).toMatchInlineSnapshot(`
    "
    ERROR  Every child failed, so there was nothing to combine.

    Agents
      1  bc-01920000-0000-7000-8000-000000000001  setup failed  0 files
      2  bc-01920000-0000-7000-8000-000000000002  setup failed  0 files

    Not taken
      bc-01920000-0000-7000-8000-000000000001  setup failed
      bc-01920000-0000-7000-8000-000000000002  setup failed
        The setup command ended with exit code 4.
        … 3 lines not shown
        line 4
        line 5
        line 6
        line 7
        line 8
        line 9
        line 10
        line 11
        the cause, which is said in a sentence that is longer than this terminal is
        wide
        A complete log can be found elsewhere
        more: tutti agent events bc-01920000-0000-7000-8000-000000000001"
  `)
})

test('a check that failed shows its exit code and the end of its output', () => {
  const shown = summary({
    synthesis: { strategy: 'merge', commit: '1234567890abcdef', bcIds: [first] },
    attempts: [
      { bcId: first, reason: 'completed', filesChanged: 2, check: { exitCode: 0, outputTail: 'fine' } },
      {
        bcId: second,
        reason: 'completed',
        filesChanged: 1,
        check: { exitCode: 7, outputTail: output(12) },
        summary: `First words\nSee ${'very '.repeat(20)}long advice: run /login`,
      },
    ],
  })
  expect(shown.join('\n')).toMatchInlineSnapshot(`
    "
    COMPLETED  The work is done.

    Agents
      1  bc-01920000-0000-7000-8000-000000000001
         completed  2 files  check passed      in the result
      2  bc-01920000-0000-7000-8000-000000000002
         completed  1 file   check failed (7)  left out
         See very very very very very very very very very very very very very very
         very very very very very very long advice: run /login
           … 2 lines not shown
           line 3
           line 4
           line 5
           line 6
           line 7
           line 8
           line 9
           line 10
           line 11
           line 12
         more: tutti agent events bc-01920000-0000-7000-8000-000000000002

    Result
      merge of 1 → 1234567890ab"
  `)
})

test('without a result the last check that was tried says why', () => {
  const checked = create(SynthesisSchema, {
    commit: 'abcdef0123456789',
    check: { exitCode: -1, outputTail: 'too slow\n' },
  })
  const shown = summary({ phase: 6, reason: 'check_failed' }, { checked })
  expect(shown).toContain('  none: the last that was tried is abcdef012345, check killed')
  expect(shown).toContain('    too slow')
})

test('conflicts are counted, each with what was kept', () => {
  const conflict = { versions: [{ bcIds: [first] }, { bcIds: [second] }] }
  const shown = summary({
    report: {
      conflicts: [
        { ...conflict, path: 'a.txt', line: 3, kind: 'content' },
        { ...conflict, path: 'new.txt', line: 1, kind: 'add_add' },
      ],
    },
  })
  expect(shown[1]).toBe('COMPLETED  The work is done. 2 conflicts: the agents disagreed there, and not')
  expect(shown).toContain('  a.txt:3  2 versions, changed differently; the base was kept there')
  expect(shown).toContain('  new.txt  2 versions, new, with different content; the first one was kept')
})

test('who stopped it', () => {
  const stopped = {
    phase: 6,
    reason: 'stopped_by_user',
    report: { failures: [{ bcId: first, reason: 'stopped_by_user', message: 'Somebody stopped it.' }] },
  }
  expect(
    summary(stopped)
      .join('\n')
      .match(/Somebody stopped it\./g),
  ).toHaveLength(2)
  expect(
    summary(stopped, { stoppedHere: true })
      .join('\n')
      .match(/You stopped it\./g),
  ).toHaveLength(2)
})

describe('fits the terminal', () => {
  const wide = {
    ...failed,
    synthesis: { strategy: 'merge', commit: '1234567890abcdef', bcIds: [first], branch: 'tutti/x' },
    pullRequest: { number: 1n, title: 'a title '.repeat(30), url: 'tutti://local/1', branch: 'tutti/x' },
    attempts: failed.attempts.map((attempt) => ({
      ...attempt,
      filesChanged: 12,
      check: { exitCode: 127, outputTail: 'word '.repeat(80) },
      summary: 'word '.repeat(80),
    })),
  }
  const commands = /tutti agent events/
  test.each([60, 80, 100, 140])('of %d columns', (width) => {
    const tooWide = summary(wide, { width }).filter(
      (line) => stringWidth(line) > width && !commands.test(line),
    )
    expect(tooWide).toEqual([])
  })

  test('a pipe has one row per agent and whole lines', () => {
    const shown = summary(wide, { width: Infinity })
    expect(shown).toContain(`  1  ${first}  setup failed  12 files  check failed (127)  in the result`)
    expect(shown).toContain(`     ${'word '.repeat(80).trimEnd()}`)
  })
})
