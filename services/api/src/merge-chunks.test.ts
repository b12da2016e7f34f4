import { expect, test } from 'vitest'

import { mergeChunks } from './merge-chunks.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
test('joins what is ready and does not wait for what is not', async () => {
  const { promise: seen, resolve: see } = Promise.withResolvers<void>()
  const source = (async function* () {
    for (const text of ['a', 'b', 'c']) yield bytes(text)
    await seen
    yield bytes('d')
  })()
  const pieces: string[] = []
  for await (const piece of mergeChunks(source)) {
    pieces.push(new TextDecoder().decode(piece))
    see()
  }
  expect(pieces).toEqual(['abc', 'd'])
})

test('gives everything that came before a failure, then the failure', async () => {
  const seen: string[] = []
  const source = (async function* () {
    yield bytes('a')
    yield bytes('b')
    throw new Error('broken')
  })()
  const reading = (async () => {
    for await (const piece of mergeChunks(source)) seen.push(new TextDecoder().decode(piece))
  })()
  await expect(reading).rejects.toThrow('broken')
  expect(seen.join('')).toBe('ab')
})

test('holds a bounded piece and ends the source when the reader leaves', async () => {
  let made = 0
  let ended = false
  const source = (async function* () {
    try {
      for (;;) {
        made += 1
        yield new Uint8Array(1024)
      }
    } finally {
      ended = true
    }
  })()
  for await (const piece of mergeChunks(source)) {
    expect(piece.byteLength).toBe(64 << 10)
    break
  }
  expect(ended).toBe(true)
  expect(made).toBeLessThan(70)
})
