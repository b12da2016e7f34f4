import { TuttiError } from '@tutti/core'

const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * Reads `90s`, `10m`, `2h`, `1h30m`, `500ms`, `7d` as milliseconds.
 *
 * @throws TuttiError `invalid_argument` with `field`.
 */
export function parseDuration(text: string, field: string): number {
  const compact = text.trim()
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(compact)) {
    throw new TuttiError(
      'invalid_argument',
      `${field}: ${JSON.stringify(text)} is not a duration. Write it like 90s, 10m or 2h.`,
      { field },
    )
  }
  let sum = 0
  for (const [, amount, unit] of compact.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g))
    sum += Number(amount) * units[unit!]!
  return Math.round(sum)
}

/** Milliseconds for a person: `850ms`, `4.2s`, `1m05s`, `2h03m`, `3d4h`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`
  const seconds = Math.floor(ms / 1000)
  const two = (value: number) => String(value).padStart(2, '0')
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`
  return `${Math.floor(minutes / 1440)}d${Math.floor((minutes % 1440) / 60)}h`
}

/** Milliseconds as a setting is written: the largest unit that needs no fraction. */
export function writeDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'])
    if (ms > 0 && ms % units[unit]! === 0) return `${ms / units[unit]!}${unit}`
  return `${ms}ms`
}
