import { TuttiError } from '@tutti/core'
import { parseLocation, type Mirrors } from '@tutti/git'
import type { DevContainerStartingPoint, RepositorySource } from '@tutti/proto'

import type { ApiDeps } from './api-deps.ts'

export interface ResolvedRepository {
  /** The registered name, or the URL. */
  readonly repository: string
  readonly ref: string
}

/**
 * What an agent starts from. A repository on the server's disk must be registered (design §11.15); paths and `file:` do not get past
 * the rules of the request.
 *
 * @throws TuttiError `not_found` for a name that is not registered, or a ref that a registered repository does not have;
 *   `invalid_argument` when nothing is named, or an address that no agent may start from.
 */
export async function resolveRepository(
  { catalog: { repositories }, mirrors }: Pick<ApiDeps, 'catalog' | 'mirrors'>,
  owner: string,
  source: RepositorySource | undefined,
  field: string,
  signal: AbortSignal,
  startingPoint?: DevContainerStartingPoint,
): Promise<ResolvedRepository> {
  if (source?.location.case === 'url') {
    checkUrl(source.location.value, `${field}.url`)
    return { repository: source.location.value, ref: source.ref }
  }
  if (source?.location.case === 'registered') {
    const name = source.location.value
    const { location } = await repositories.get(owner, name, signal).catch((error: unknown) => {
      if (!(error instanceof TuttiError) || error.code !== 'not_found') throw error
      throw new TuttiError(
        'not_found',
        `There is no registered repository ${JSON.stringify(name)}. Register its folder with \`tutti repo add PATH\`, then use the name it prints.`,
        { field: `${field}.registered`, name },
        error,
      )
    })
    await checkRef(mirrors, location, source.ref, `${field}.ref`, signal)
    return { repository: name, ref: source.ref }
  }
  if (startingPoint) {
    checkUrl(startingPoint.url, 'devcontainer_starting_point.url')
    return { repository: startingPoint.url, ref: startingPoint.ref }
  }
  throw new TuttiError('invalid_argument', `${field} must name a registered repository or a URL.`, { field })
}

/** What an address says by itself: its form, and a host that is this machine or a private address (SEC-04). */
function checkUrl(url: string, field: string): void {
  try {
    parseLocation(url)
  } catch (thrown) {
    const error = TuttiError.from(thrown)
    throw new TuttiError(error.code, error.message, { ...error.detail, field }, error)
  }
}

/** A folder on this disk is asked at once; what is elsewhere may be slow, so its agent finds out. */
async function checkRef(
  mirrors: Mirrors,
  location: string,
  ref: string,
  field: string,
  signal: AbortSignal,
): Promise<void> {
  if (ref === '') return
  const there = await mirrors.mayHaveRef(location, ref, signal).catch((thrown: unknown) => {
    const error = TuttiError.from(thrown)
    // To a caller that would mean that the server is not reachable.
    if (error.code !== 'unavailable') throw error
    throw new TuttiError('failed_precondition', error.message, { ...error.detail, field }, error)
  })
  if (there) return
  throw new TuttiError(
    'not_found',
    `The repository has no commit at ${JSON.stringify(ref)}; name a branch, a tag or a hash.`,
    { field, ref },
  )
}
