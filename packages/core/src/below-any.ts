/**
 * Whether a path lies below one of these, which may become more meanwhile. A loop of its own, as walks ask it for every path:
 * {@link foldersOf} takes up to twice as long.
 */
export function belowAny(folders: ReadonlySet<string>): (key: string) => boolean {
  return (key) => {
    if (folders.size === 0) return false
    for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
      if (folders.has(key.slice(0, slash))) return true
    }
    return false
  }
}
