/** Numbers that a seed decides. */
export interface SeededRandom {
  /** From 0 to below `limit`. */
  below(limit: number): number
  chance(share: number): boolean
  /** @throws Error when there is none. */
  pick<T>(from: readonly T[]): T
}

/** mulberry32: 32 bits of state, enough to tell tests apart. */
export function createSeededRandom(seed: number): SeededRandom {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
  // Seeds that follow one another begin alike.
  for (let round = 0; round < 4; round += 1) next()
  return {
    below: (limit) => Math.floor(next() * limit),
    chance: (share) => next() < share,
    pick(from) {
      if (from.length === 0) throw new Error('There is nothing to pick from.')
      return from[Math.floor(next() * from.length)]!
    },
  }
}
