import type { Catalog } from '@tutti/store'

/** Where a repository is: its URL, or the registered path behind a name. */
export async function repositoryLocation(
  catalog: Catalog,
  owner: string,
  repository: string,
  signal: AbortSignal,
): Promise<string> {
  if (repository.includes(':')) return repository
  return (await catalog.repositories.get(owner, repository, signal)).location
}
