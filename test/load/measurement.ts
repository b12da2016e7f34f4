/** One line of the results: ours, the baseline of the same run, and what is promised. */
export interface Measurement {
  readonly name: string
  readonly unit: 'ms' | 'MB' | 'requests'
  readonly ours: number
  readonly baseline?: number
  /** At most this ratio to the baseline, or this value when there is none; absent where nothing is promised. */
  readonly limit?: number
  readonly runs: number
}

export const holds = ({ ours, baseline, limit }: Measurement): boolean =>
  limit === undefined || (baseline === undefined ? ours <= limit : ours / baseline <= limit)

/** A markdown table for docs/benchmarks.md. */
export function table(measurements: readonly Measurement[]): string {
  const rows = measurements.map((line) => {
    const { name, unit, ours, baseline, limit, runs } = line
    const ratio = baseline === undefined ? '' : (ours / baseline).toFixed(2)
    const most = baseline === undefined ? `≤ ${limit} ${unit}` : `≤ ${limit}×`
    const promise = limit === undefined ? '' : most
    const value = (number: number | undefined) =>
      number === undefined ? '' : `${number.toFixed(number < 100 && unit !== 'requests' ? 1 : 0)} ${unit}`
    return `| ${name} | ${value(ours)} | ${value(baseline)} | ${ratio} | ${promise} | ${limit === undefined ? '' : holds(line) ? 'yes' : 'NO'} | ${runs} |`
  })
  return [
    '| what | Tutti | baseline | ratio | promise | holds | runs |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}
