import { TuttiError } from '@tutti/core'
import type { DevContainerStartingPoint, RepositorySource } from '@tutti/proto'
import type { RepositoryCatalog } from '@tutti/store'

export interface ResolvedRepository {
  /** The registered name, or the URL. */
  readonly repository: string
  readonly ref: string
}

/**
 * What an agent starts from. A repository on the server's disk must be registered (design §11.15); paths and `file:` do not get past
 * the rules of the request.
 *
 * @throws TuttiError `not_found` for a name that is not registered; `invalid_argument` when nothing is named.
 */
export async function resolveRepository(
  repositories: RepositoryCatalog,
  owner: string,
  source: RepositorySource | undefined,
  field: string,
  signal: AbortSignal,
  startingPoint?: DevContainerStartingPoint,
): Promise<ResolvedRepository> {
  if (source?.location.case === 'url') return { repository: source.location.value, ref: source.ref }
  if (source?.location.case === 'registered') {
    const name = source.location.value
    await repositories.get(owner, name, signal).catch((error: unknown) => {
      if (!(error instanceof TuttiError) || error.code !== 'not_found') throw error
      throw new TuttiError(
        'not_found',
        `There is no registered repository ${JSON.stringify(name)}. Register its folder with \`tutti repo add PATH\`, then use the name it prints.`,
        { field: `${field}.registered`, name },
        error,
      )
    })
    return { repository: name, ref: source.ref }
  }
  if (startingPoint) return { repository: startingPoint.url, ref: startingPoint.ref }
  throw new TuttiError('invalid_argument', `${field} must name a registered repository or a URL.`, { field })
}
