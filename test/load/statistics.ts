/** The value below which the share `p` (0 to 1) of the samples lies; of fewer than 20 samples, p95 is the largest. */
export function percentile(samples: readonly number[], p: number): number {
  const sorted = [...samples].sort((left, right) => left - right)
  return sorted[Math.min(sorted.length - 1, Math.ceil(p * sorted.length) - 1)] ?? Number.NaN
}

export const median = (samples: readonly number[]): number => percentile(samples, 0.5)
