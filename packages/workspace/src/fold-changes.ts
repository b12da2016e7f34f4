import { foldersOf } from '@tutti/core'
import { changedFile, changePath, type CapturedChange } from './file-state.ts'
import { pathKey } from './path-key.ts'

/**
 * The last change of each path, in an order that can be applied as it stands: deletions first, deepest first, then the rest in path order.
 * The input is in log order. Of a file and what is below a folder of its name, the later one stands: a scan reports the other's end, but
 * nobody has looked between two changes of a user's.
 */
export function foldChanges(changes: Iterable<CapturedChange>): CapturedChange[] {
  const latest = new Map<string, CapturedChange>()
  for (const change of changes) {
    const key = pathKey(changePath(change))
    latest.delete(key)
    latest.set(key, change)
  }
  const later = createWrittenPaths()
  const standing = [...latest].reverse().filter(([key, change]) => later.add(key, change))
  const entries = standing.sort(([left], [right]) => (left < right ? -1 : 1))
  const deleted = entries.filter(([, change]) => change.action === 'deleted').reverse()
  const written = entries.filter(([, change]) => change.action !== 'deleted')
  return [...deleted, ...written].map(([, change]) => change)
}

/** Cuts changes, in their order, where one writes a file in the place of an earlier one's folder, or below an earlier one's file. */
export function* untilConflict<T>(items: Iterable<T>, changeOf: (item: T) => CapturedChange): Generator<T[]> {
  let step: T[] = []
  let paths = createWrittenPaths()
  for (const item of items) {
    const change = changeOf(item)
    const key = pathKey(changePath(change))
    if (!paths.add(key, change)) {
      yield step
      step = []
      paths = createWrittenPaths()
      paths.add(key, change)
    }
    step.push(item)
  }
  if (step.length > 0) yield step
}

/** Paths of files that can be there together. */
function createWrittenPaths() {
  const files = new Set<string>()
  const folders = new Set<string>()
  return {
    /** @returns false when it cannot be there with the others; it is not added then */
    add(key: string, change: CapturedChange): boolean {
      if (changedFile(change) === undefined) return true
      const own = [...foldersOf(key)]
      if (folders.has(key) || own.some((folder) => files.has(folder))) return false
      files.add(key)
      for (const folder of own) folders.add(folder)
      return true
    },
  }
}
