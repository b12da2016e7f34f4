import { lstatSync, readdirSync } from 'node:fs'
import { foldersOf } from '@tutti/core'
import { isRacy, pathBytes, pathKey, sameStat, statTuple, type StatTuple } from '@tutti/workspace'

interface Listing {
  readonly stat: StatTuple
  readonly readAtNs: bigint
  readonly names: ReadonlySet<string>
}

/**
 * On a disk that ignores case: the path that it has in the place of this one, such as `Lib` for `lib/x`; undefined when the path is there
 * as it is spelled, or nothing is. Only a list of a folder says how a name is spelled.
 */
export function createNamesakes(path: (key: string) => Buffer): (key: string) => string | undefined {
  const listings = new Map<string, Listing>()

  function namesIn(folder: string): ReadonlySet<string> {
    const stat = statTuple(lstatSync(path(folder), { bigint: true }))
    const cached = listings.get(folder)
    if (cached && sameStat(cached.stat, stat) && !isRacy(stat, cached.readAtNs)) return cached.names
    const readAtNs = BigInt(Date.now()) * 1_000_000n
    const names = new Set(readdirSync(path(folder), { encoding: 'latin1' }))
    listings.set(folder, { stat, readAtNs, names })
    return names
  }

  return (key) => {
    for (const part of [...foldersOf(key), key]) {
      if (!lstatSync(path(part), { throwIfNoEntry: false })) return undefined
      const slash = part.lastIndexOf('/')
      const folder = part.slice(0, Math.max(0, slash))
      const names = namesIn(folder)
      if (names.has(part.slice(slash + 1))) continue
      const other = [...names].find(
        (name) => foldedKey(part) === foldedKey(folder === '' ? name : `${folder}/${name}`),
      )
      return other === undefined || folder === '' ? (other ?? part) : `${folder}/${other}`
    }
    return undefined
  }
}

/** Paths that a disk which ignores case, or composes letters, takes for one and the same. */
export const foldedKey = (key: string): string =>
  pathKey(Buffer.from(pathBytes(key).toString().normalize('NFC').toLowerCase()))
