import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { createMemoryBlobStore } from '@tutti/blob-store'
import { limits } from '@tutti/core'
import type { RunEvent } from '@tutti/protocol'
import { expect, test } from 'vitest'
import { createShellOutputCap } from './shell-output.ts'

const never = new AbortController().signal
type ShellEvent = Extract<RunEvent, { type: 'shell_output_delta' }>
const delta = (callId: string, data: string, stream: 'stdout' | 'stderr' = 'stdout'): ShellEvent => ({
  type: 'shell_output_delta',
  callId,
  event: { case: stream, data },
})
const exit = (callId: string): ShellEvent => ({
  type: 'shell_output_delta',
  callId,
  event: { case: 'exit', code: 0 },
})
const spools = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('tutti-shell-')).length

function shell(events: readonly RunEvent[]) {
  return events.flatMap((event) => (event.type === 'shell_output_delta' ? [event.event] : []))
}
const dataOf = (events: readonly RunEvent[]) =>
  shell(events)
    .map((part) => ('data' in part ? part.data : ''))
    .join('')

test('STR-06: ten thousand deltas keep head and tail inline and all of it as a blob; head + left out + tail is everything', async () => {
  const blobs = createMemoryBlobStore()
  const cap = createShellOutputCap(blobs)
  const parts = Array.from({ length: 10_000 }, (_, index) =>
    delta(
      'a',
      `${'x'.repeat(193)}${String(index).padStart(6, '0')}\n`,
      Math.floor(index / 50) % 2 ? 'stderr' : 'stdout',
    ),
  )
  const all = dataOf(parts)
  expect(all).toHaveLength(2_000_000)
  const kept: RunEvent[] = []
  for (const part of parts) kept.push(...(await cap.pass(part, never)))
  const head = dataOf(kept)
  expect(all.startsWith(head)).toBe(true)
  expect(head.length).toBeLessThanOrEqual(limits.shellHeadBytes)
  const last = await cap.pass(exit('a'), never)
  const [truncated, ...rest] = shell(last)
  if (truncated?.case !== 'truncated') throw new Error('nothing was left out')
  const tail = dataOf(last)
  expect(all.endsWith(tail)).toBe(true)
  expect(tail.length).toBeGreaterThanOrEqual(limits.shellTailBytes)
  expect(head.length + truncated.bytes + tail.length).toBe(all.length)
  expect(rest.at(-1)).toEqual({ case: 'exit', code: 0 })
  expect(new TextDecoder().decode(await blobs.get(truncated.blobId!, never))).toBe(all)
  // Each stays with its stream.
  const streams = shell(last).filter((part) => 'data' in part)
  expect(streams.map((part) => part.case)).toEqual(
    parts.slice(-streams.length).map((part) => part.event.case),
  )
})

test('SEC-06 of endless output a limited part is stored: its beginning; the tail is there, and the count is right', async () => {
  const blobs = createMemoryBlobStore()
  const cap = createShellOutputCap(blobs)
  const part = 'z'.repeat(1 << 20)
  const parts = limits.maxShellOutputBytes / part.length + 3
  let said = 0
  for (let index = 0; index < parts; index += 1)
    said += dataOf(await cap.pass(delta('a', part), never)).length
  const last = await cap.pass(delta('a', 'the end'), never).then(() => cap.pass(exit('a'), never))
  const [truncated] = shell(last)
  if (truncated?.case !== 'truncated') throw new Error('nothing was left out')
  expect(dataOf(last).endsWith('the end')).toBe(true)
  expect(said + truncated.bytes + dataOf(last).length).toBe(parts * part.length + 'the end'.length)
  expect((await blobs.get(truncated.blobId!, never)).length).toBe(limits.maxShellOutputBytes)
})

test('output that fits stays as it is, and makes no blob', async () => {
  const cap = createShellOutputCap(createMemoryBlobStore())
  expect(await cap.pass(delta('a', 'short'), never)).toEqual([delta('a', 'short')])
  expect(await cap.pass(exit('a'), never)).toEqual([exit('a')])
})

test('output between head and head + tail is whole, with nothing left out', async () => {
  const cap = createShellOutputCap(createMemoryBlobStore())
  const chunk = 'y'.repeat(1024)
  const kept: RunEvent[] = []
  for (let index = 0; index < 100; index += 1) kept.push(...(await cap.pass(delta('a', chunk), never)))
  kept.push(...(await cap.pass(exit('a'), never)))
  expect(dataOf(kept)).toBe(chunk.repeat(100))
  expect(shell(kept).some((part) => part.case === 'truncated')).toBe(false)
})

test('the head ends by bytes of UTF-8, not by characters', async () => {
  const cap = createShellOutputCap(createMemoryBlobStore())
  const head = delta('a', '€'.repeat(Math.floor(limits.shellHeadBytes / 3)))
  expect(await cap.pass(head, never)).toEqual([head])
  expect(await cap.pass(delta('a', '€'), never)).toEqual([])
  const tail = '😀'.repeat(limits.shellTailBytes / 4)
  expect(await cap.pass(delta('a', tail), never)).toEqual([])
  const last = shell(await cap.end('a', never))
  expect(last).toMatchObject([{ case: 'truncated', bytes: 3 }, { data: tail }])
})

test('calls are apart; one that never says how it ended is ended; nothing stays on disk', async () => {
  const before = await spools()
  const cap = createShellOutputCap(createMemoryBlobStore())
  const big = 'z'.repeat(limits.shellHeadBytes + 1)
  expect(await cap.pass(delta('a', big), never)).toEqual([])
  expect(await cap.pass(delta('b', 'other'), never)).toEqual([delta('b', 'other')])
  expect(dataOf(await cap.end('a', never))).toBe(big)
  expect(await cap.end('a', never)).toEqual([])
  await cap.pass(delta('c', big), never)
  await cap.close()
  expect(await spools()).toBe(before)
})
