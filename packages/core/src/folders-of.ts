/** Every folder on the way to a path whose components are parted by `/`, outermost first. */
export function* foldersOf(path: string): Generator<string, undefined> {
  for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
    yield path.slice(0, slash)
  return undefined
}
