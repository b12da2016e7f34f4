import { expect, test } from 'vitest'
import { agentId, ensembleId } from './ids.ts'
import { madeAt, parseTraceparent, spanIdsOf, traceparentOf } from './trace-context.ts'

const random = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
const en = ensembleId(1_700_000_000_123, random)
const bc = agentId(
  1_700_000_000_456,
  random.map((byte) => byte + 100),
)

test('an id is its trace: the UUID the trace id, its last 16 digits the span id', () => {
  const uuid = en.slice(3).replaceAll('-', '')
  expect(spanIdsOf(en)).toEqual({ traceId: uuid, spanId: uuid.slice(16) })
  expect(traceparentOf(en)).toBe(`00-${uuid}-${uuid.slice(16)}-01`)
  expect(parseTraceparent(traceparentOf(en))).toEqual(spanIdsOf(en))
})

test("a member's span is its own, in the trace of its ensemble", () => {
  expect(spanIdsOf(bc, en)).toEqual({ traceId: spanIdsOf(en).traceId, spanId: spanIdsOf(bc).spanId })
})

test('an id says when it was made', () => {
  expect(madeAt(en)).toBe(1_700_000_000_123)
})

test.each([
  '',
  'x',
  `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
  `00-${'1'.repeat(32)}-${'0'.repeat(16)}-01`,
  `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
  `00-${'1'.repeat(31)}-${'1'.repeat(16)}-01`,
  `00-${'A'.repeat(32)}-${'1'.repeat(16)}-01`,
  `00-${'1'.repeat(32)}-${'1'.repeat(16)}-01\n`,
])('%j is no traceparent', (text) => {
  expect(parseTraceparent(text)).toBeUndefined()
})
