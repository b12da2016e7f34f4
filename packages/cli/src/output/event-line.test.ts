import type { RunEvent } from '@tutti/protocol'
import { expect, test } from 'vitest'
import { eventLines } from './event-line.ts'

const at = new Date(2026, 0, 31, 9, 5, 7).getTime()
const shell = (event: Extract<RunEvent, { type: 'shell_output_delta' }>['event']): RunEvent => ({
  type: 'shell_output_delta',
  callId: 'call-1',
  event,
})
const result = { exitCode: 1, durationMs: 10, tail: 'one\ntwo\n' }

test.each<[string, RunEvent, string[]]>([
  [
    'output, line by line',
    shell({ case: 'stdout', data: 'tick 1\r\ntick 2\n' }),
    ['stdout      tick 1', 'stdout      tick 2'],
  ],
  ['the end of a program', shell({ case: 'exit', code: 3 }), ['shell       exit code 3']],
  [
    'a tool with its command',
    { type: 'tool_call_started', callId: 'c', toolName: 'shell', args: { timeout: 5, command: 'npm test' } },
    ['tool        shell  npm test'],
  ],
  [
    'a tool without one, with its arguments',
    { type: 'tool_call_started', callId: 'c', toolName: 'todo', args: { items: ['a'] } },
    ['tool        todo  {"items":["a"]}'],
  ],
  [
    'a check that failed, with the end of what it printed',
    { type: 'check', command: 'npm test', commit: 'c', result },
    ['check       npm test  exit code 1', 'check       one', 'check       two'],
  ],
  [
    'a recovery that passed over a checkpoint',
    {
      type: 'recovery',
      incarnation: 2,
      reason: 'lost',
      commit: 'c1',
      passedOver: ['c3', 'c2'],
      replayed: 7,
      index: 'restored',
      manifestDigest: 'd',
      proven: true,
      missing: [
        { path: 'shut', reason: 'unreadable' },
        { path: 'big', reason: 'too_large' },
        { path: '.git', reason: 'unreadable' },
      ],
      steps: [{ name: 'put_back', ms: 5 }],
    },
    [
      'recovery    sandbox 2 after one that was lost  c1  changes replayed: 7',
      'recovery    passed over: checkpoint c3 is lost or damaged',
      'recovery    passed over: checkpoint c2 is lost or damaged',
      'recovery    index restored, digest as recorded',
      'recovery    as it was last read, if ever: shut (unreadable)',
      'recovery    not there: big (too_large)',
      'recovery    not there: .git (unreadable)',
      'recovery    put_back 5 ms',
    ],
  ],
  [
    'a question with its options',
    { type: 'agent_question', questionId: 'q', text: 'Which?', options: ['a', 'b'] },
    ['asks        Which?  [a | b]'],
  ],
  [
    'control characters, made visible',
    { type: 'text_delta', text: 'a\u001b[2Jb\u202e\n\nc' },
    ['says        a\\x1b[2Jb\\u202e', 'says', 'says        c'],
  ],
  [
    'an event of a newer version, as it is',
    { type: 'from_the_future', when: 'later' } as unknown as RunEvent,
    ['from_the_future {"when":"later"}'],
  ],
])('%s', (_what, event, lines) => {
  expect(eventLines(event, at, Infinity)).toEqual(lines.map((line) => `09:05:07  ${line}`))
})

test('never wider than the terminal, and no time that is not known', () => {
  expect(eventLines({ type: 'text_delta', text: 'x'.repeat(200) }, at, 40)[0]).toHaveLength(40)
  expect(eventLines({ type: 'ack', commandId: 'c' }, 0, 40)).toEqual(['--:--:--  command     done'])
})
