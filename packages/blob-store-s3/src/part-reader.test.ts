import { createHash } from 'node:crypto'
import { blobIdOf } from '@tutti/blob-store'
import { expect, test } from 'vitest'
import { createPartReader } from './part-reader.ts'
import type { SpooledBlob } from './spooled-blob.ts'

const blobOf = (bytes: Uint8Array): SpooledBlob => ({
  id: blobIdOf(bytes),
  size: bytes.length,
  onDisk: false,
  // Later parts are there first.
  read: async (start, end) => {
    for (let turns = bytes.length - start; turns > 0; turns -= 1) await Promise.resolve()
    return bytes.subarray(start, end)
  },
  close: async () => {},
})
const base64 = (text: string) => createHash('sha256').update(text).digest('base64')

test('parts come in order, each with its hash, however many are asked for at once', async () => {
  const reader = createPartReader(blobOf(Buffer.from('aaabbbc')), 3)
  const parts = await Promise.all(Array.from({ length: reader.count }, () => reader.next()))
  expect(parts).toEqual([
    { number: 1, bytes: Buffer.from('aaa'), sha256: base64('aaa') },
    { number: 2, bytes: Buffer.from('bbb'), sha256: base64('bbb') },
    { number: 3, bytes: Buffer.from('c'), sha256: base64('c') },
  ])
  expect(() => reader.check()).not.toThrow()
})

test('bytes that are others than those that gave the blob its name are refused', async () => {
  const bytes = Buffer.from('aaabbb')
  const reader = createPartReader(blobOf(bytes), 3)
  await reader.next()
  bytes.fill('x', 3)
  await reader.next()
  expect(() => reader.check()).toThrow(/changed while they were stored/)
})
