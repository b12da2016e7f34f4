import { limits } from '@tutti/core'
import { expect, test } from 'vitest'
import { joinDeltas } from './coalesce.ts'
import type { RunEvent } from './run-event.ts'

const kinds: Record<string, (text: string) => RunEvent> = {
  text_delta: (text) => ({ type: 'text_delta', text }),
  thinking_delta: (text) => ({ type: 'thinking_delta', text }),
  partial_tool_call: (text) => ({
    type: 'partial_tool_call',
    callId: 'c',
    toolName: 't',
    argsTextDelta: text,
  }),
  shell_output_delta: (data) => ({
    type: 'shell_output_delta',
    callId: 'c',
    event: { case: 'stdout', data },
  }),
}
const units = ['a', 'é', '€', '😀']

test.for(Object.keys(kinds).flatMap((kind) => units.map((unit) => [kind, unit] as const)))(
  '%s of %s are joined up to 16 KiB of UTF-8 and no byte further',
  ([kind, unit]) => {
    const event = kinds[kind]!
    const size = Buffer.byteLength(unit)
    const rest = unit.repeat(100)
    const full = limits.coalesceBytes - Buffer.byteLength(rest)
    const left = unit.repeat(Math.floor(full / size)) + 'x'.repeat(full % size)
    expect(joinDeltas(event(left), event(rest))).toEqual(event(left + rest))
    expect(joinDeltas(event(`${left}x`), event(rest))).toBeUndefined()
    expect(joinDeltas(event(unit), event(unit))).toEqual(event(unit + unit))
  },
)

test('a character that was cut in two is whole again, and never makes a record too large', () => {
  const [high, low] = ['\ud83d', '\ude00']
  const text = (words: string): RunEvent => ({ type: 'text_delta', text: words })
  expect(joinDeltas(text(high), text(low))).toEqual(text('😀'))
  expect(joinDeltas(text('x'.repeat(limits.coalesceBytes - 3) + high), text(low))).toBeUndefined()
})

test('deltas of another kind, call or stream stay apart', () => {
  const all = Object.values(kinds).map((make) => make('x'))
  all.push({ type: 'partial_tool_call', callId: 'd', toolName: 't', argsTextDelta: 'x' })
  all.push({ type: 'shell_output_delta', callId: 'd', event: { case: 'stdout', data: 'x' } })
  all.push({ type: 'shell_output_delta', callId: 'c', event: { case: 'stderr', data: 'x' } })
  all.push({ type: 'shell_output_delta', callId: 'c', event: { case: 'exit', code: 0 } })
  for (const left of all) {
    for (const right of all.filter((other) => other !== left)) expect(joinDeltas(left, right)).toBeUndefined()
  }
})
