import type { LogId } from '@tutti/core'

/** Positions have so many digits, so that names sort as the segments follow one another. */
const digits = 16
const pattern = /^logs\/run_([a-z]{2}-[0-9a-f-]{36})\.(\d{16})-(\d{16})\.jsonl$/

/** `logs/run_{id}.{first}-{last}.jsonl`: the log of the seed's layout, in segments. */
export const segmentName = (log: LogId, first: number, last: number): string =>
  `logs/run_${log}.${String(first).padStart(digits, '0')}-${String(last).padStart(digits, '0')}.jsonl`

export interface SegmentPlace {
  readonly name: string
  readonly log: LogId
  readonly first: number
  readonly last: number
}

/** Undefined for what is no segment. */
export function segmentPlace(name: string): SegmentPlace | undefined {
  const [, log, first, last] = pattern.exec(name) ?? []
  return log ? { name, log: log as LogId, first: Number(first), last: Number(last) } : undefined
}
