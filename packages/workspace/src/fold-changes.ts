import { changePath, type CapturedChange } from './file-state.ts'
import { pathKey } from './path-key.ts'

/**
 * The last change of each path, in an order that can be applied as it stands: deletions first, deepest first, then the rest in path order.
 * The input is in log order.
 *
 * A file written where another path's folder was, or below another path's file, needs no special care: the scan that saw it also
 * saw the other path's end and reported it.
 */
export function foldChanges(changes: Iterable<CapturedChange>): CapturedChange[] {
  const latest = new Map<string, CapturedChange>()
  for (const change of changes) latest.set(pathKey(changePath(change)), change)
  const entries = [...latest].sort(([left], [right]) => (left < right ? -1 : 1))
  const deleted = entries.filter(([, change]) => change.action === 'deleted').reverse()
  const written = entries.filter(([, change]) => change.action !== 'deleted')
  return [...deleted, ...written].map(([, change]) => change)
}
