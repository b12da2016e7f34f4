import { expect, test } from 'vitest'
import { createTextTail } from './text-tail.ts'

test('keeps the end of a text within its bytes and never half a character', () => {
  for (let limit = 1; limit <= 20; limit += 1) {
    const tail = createTextTail(limit)
    for (const piece of ['start ', 'é', '🎵', '€uro', 'é🎵\n']) tail.push(piece)
    const text = tail.text()
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(limit)
    expect('start é🎵€uroé🎵'.endsWith(text)).toBe(true)
  }
})
