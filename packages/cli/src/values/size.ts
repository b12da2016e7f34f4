import { TuttiError } from '@tutti/core'

const units: Record<string, number> = { b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 }

/**
 * Reads `512MiB`, `2GiB`, `1.5g`, `4096` as bytes. All units are powers of 1024.
 *
 * @throws TuttiError `invalid_argument` with `field`.
 */
export function parseSize(text: string, field: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|b)?$/i.exec(text.trim())
  if (!match) {
    throw new TuttiError(
      'invalid_argument',
      `${field}: ${JSON.stringify(text)} is not a size. Write it like 512MiB or 2GiB.`,
      { field },
    )
  }
  return Math.round(Number(match[1]) * units[(match[2] ?? 'b').toLowerCase()]!)
}

/** Bytes as a setting is written: the largest unit that needs no fraction. */
export function writeSize(bytes: number): string {
  for (const unit of ['T', 'G', 'M', 'K']) {
    const factor = units[unit.toLowerCase()]!
    if (bytes > 0 && bytes % factor === 0) return `${bytes / factor}${unit}iB`
  }
  return `${bytes}B`
}
