import type { BigIntStats } from 'node:fs'

/** What must be unchanged for a file's content to count as unchanged. ctime catches content changed under a restored mtime. */
export interface StatTuple {
  readonly ino: bigint
  readonly size: bigint
  readonly mtimeNs: bigint
  readonly ctimeNs: bigint
  readonly mode: bigint
}

export const statTuple = (stats: BigIntStats): StatTuple => ({
  ino: stats.ino,
  size: stats.size,
  mtimeNs: stats.mtimeNs,
  ctimeNs: stats.ctimeNs,
  mode: stats.mode,
})

export const sameStat = (left: StatTuple, right: StatTuple): boolean =>
  left.ino === right.ino &&
  left.size === right.size &&
  left.mtimeNs === right.mtimeNs &&
  left.ctimeNs === right.ctimeNs &&
  left.mode === right.mode

/** File systems tick as coarsely as this; a write in the same tick as the reading leaves no trace in the tuple. */
const racyNs = 2_000_000_000n

/** As in git: a file touched less than two seconds before it was read may have changed since without a trace. */
export const isRacy = (stat: StatTuple, readAtNs: bigint): boolean =>
  stat.mtimeNs + racyNs >= readAtNs || stat.ctimeNs + racyNs >= readAtNs
