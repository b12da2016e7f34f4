/**
 * Folders that nothing captured is in: not even another folder. They would be lost with their sandbox, as git has none. A folder on the way
 * to a submodule is none of them, even while the submodule is not there: to git its end would be the submodule's.
 */
export function emptyFolders(
  folders: Iterable<string>,
  files: Iterable<string>,
  gitlinks: Iterable<string>,
): Set<string> {
  const empty = new Set(folders)
  const holders = new Set<string>()
  for (const key of files) holders.add(folderOf(key))
  for (const key of empty) holders.add(folderOf(key))
  for (const key of ancestors(gitlinks)) holders.add(key)
  for (const key of holders) empty.delete(key)
  return empty
}

/** Every folder on the way to one of these. */
export function ancestors(keys: Iterable<string>): Set<string> {
  const found = new Set<string>()
  for (const key of keys) {
    for (let folder = folderOf(key); folder !== '' && !found.has(folder); folder = folderOf(folder))
      found.add(folder)
  }
  return found
}

/** Empty for what lies in the workspace itself. */
const folderOf = (key: string): string => key.slice(0, Math.max(0, key.lastIndexOf('/')))
