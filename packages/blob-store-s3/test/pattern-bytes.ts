/** Bytes without a short period, the same for the same seed. */
export function patternBytes(size: number, seed: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(size / 4))
  let state = (seed + 1) * 2_654_435_761
  for (let index = 0; index < words.length; index += 1) {
    state = Math.imul(state ^ (state >>> 15), 2_246_822_519) + index
    words[index] = state
  }
  return new Uint8Array(words.buffer, 0, size)
}
