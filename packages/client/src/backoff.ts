/** Milliseconds: the first wait is at most this long ... */
const firstMs = 250
/** ... and no wait is longer than this. */
const longestMs = 15_000

/**
 * How long to wait before attempt `failures` + 1, in milliseconds: full jitter, so that clients that lost the same server do not
 * come back together.
 */
export function backoffMs(failures: number, random: () => number): number {
  const ceiling = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 16))
  return Math.round(random() * ceiling)
}
