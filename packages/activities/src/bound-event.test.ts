import { createMemoryBlobStore } from '@tutti/blob-store'
import { limits } from '@tutti/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { boundEvent } from './bound-event.ts'

const never = new AbortController().signal

test('long texts become deltas that join to the same text, none of them half a character', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }),
      fc.nat(3),
      async (unit, shift) => {
        const text = 'a'.repeat(shift) + unit.repeat(Math.ceil((3 * limits.coalesceBytes) / unit.length))
        const events = await boundEvent({ type: 'text_delta', text }, createMemoryBlobStore(), never)
        const parts = events.map((event) => (event.type === 'text_delta' ? event.text : ''))
        expect(parts.join('')).toBe(text)
        for (const part of parts) {
          expect(Buffer.byteLength(part)).toBeLessThanOrEqual(limits.coalesceBytes)
          expect(part.isWellFormed()).toBe(true)
        }
      },
    ),
    { numRuns: 50 },
  )
})

test.for(['a', 'é', '€', '😀'])('a text of %s is cut at 16 KiB of UTF-8, not before', async (unit) => {
  const most = unit.repeat(Math.floor(limits.coalesceBytes / Buffer.byteLength(unit)))
  const parts = async (text: string) =>
    (await boundEvent({ type: 'thinking_delta', text }, createMemoryBlobStore(), never)).map((event) =>
      event.type === 'thinking_delta' ? event.text : '',
    )
  expect(await parts(most)).toEqual([most])
  expect(await parts(most + unit)).toEqual([most, unit])
  expect(await parts(most + most + unit)).toEqual([most, most, unit])
})

test('large arguments and results become a blob that the event names; small ones stay', async () => {
  const blobs = createMemoryBlobStore()
  const args = { text: 'x'.repeat(limits.maxInlineEventBytes) }
  const [started] = await boundEvent(
    { type: 'tool_call_started', callId: 'c', toolName: 't', args },
    blobs,
    never,
  )
  if (started?.type !== 'tool_call_started') throw new Error('another event')
  const spilled = started.args as { truncated: boolean; bytes: number; blobId: `sha256_${string}` }
  expect(spilled).toMatchObject({ truncated: true, bytes: limits.maxInlineEventBytes + 11 })
  expect(JSON.parse(new TextDecoder().decode(await blobs.get(spilled.blobId, never)))).toEqual(args)
  const small = {
    type: 'tool_call_completed',
    callId: 'c',
    toolName: 't',
    outcome: 'ok',
    result: { a: 1 },
  } as const
  expect(await boundEvent(small, blobs, never)).toEqual([small])
  const [empty] = await boundEvent(
    { type: 'tool_call_started', callId: 'c', toolName: 't', args: undefined },
    blobs,
    never,
  )
  expect(empty).toEqual({ type: 'tool_call_started', callId: 'c', toolName: 't', args: undefined })
})
