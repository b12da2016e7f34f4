import type { RepositoryCatalog } from './port.ts'

/** Where a repository is: the path behind a registered name, or the URL itself. @throws TuttiError `not_found`. */
export async function repositoryLocation(
  repositories: RepositoryCatalog,
  owner: string,
  repository: string,
  signal: AbortSignal,
): Promise<string> {
  // Names have neither a colon nor a slash, every URL has one.
  if (/[:/]/.test(repository)) return repository
  return (await repositories.get(owner, repository, signal)).location
}
