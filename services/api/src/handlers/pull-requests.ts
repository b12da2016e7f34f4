import { TuttiError } from '@tutti/core'
import type {
  DiffPullRequestRequest,
  GetPullRequestRequest,
  ListPullRequestsRequest,
  PullRequestKey,
} from '@tutti/proto'
import type { PullRequestRow } from '@tutti/store'

import { callerOf } from '../call-context.ts'
import { filledPage } from '../filled-page.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { pullRequestStates as states, pullRequestView } from '../pull-request-view.ts'
import { streamDiff } from '../stream-diff.ts'

const searchPage = 1000

/** `tutti.v1.PullRequestService`. */
export function createPullRequests(deps: HandlerDeps) {
  const { pullRequests } = deps.catalog

  return {
    async listPullRequests(request: ListPullRequestsRequest, context: CallContext) {
      const { owner } = callerOf(context)
      await checkRepository(owner, request.repository, context.signal)
      const wanted = new Set(request.states)
      const shown = (row: PullRequestRow) =>
        (wanted.size === 0 || wanted.has(states[row.state])) &&
        (request.repository === '' || row.repository === request.repository)
      const page = await filledPage(
        request,
        (wanted) => pullRequests.list(owner, wanted, context.signal),
        shown,
      )
      return { pullRequests: page.items.map(pullRequestView), nextPageToken: page.nextPageToken }
    },

    async getPullRequest({ key }: GetPullRequestRequest, context: CallContext) {
      return { pullRequest: pullRequestView(await find(callerOf(context).owner, key!, context.signal)) }
    },

    async *diffPullRequest({ key }: DiffPullRequestRequest, context: CallContext) {
      const { owner } = callerOf(context)
      const { repository, baseCommit, headCommit } = await find(owner, key!, context.signal)
      yield* streamDiff(deps, { owner, repository, baseCommit, commit: headCommit }, context.signal)
    },
  }

  /** A name that is not registered is not a repository without pull requests; of a URL nobody knows. */
  async function checkRepository(owner: string, name: string, signal: AbortSignal): Promise<void> {
    if (name === '' || /[:/]/.test(name)) return
    await deps.catalog.repositories.get(owner, name, signal)
  }

  async function find(
    owner: string,
    { url, number, repository }: PullRequestKey,
    signal: AbortSignal,
  ): Promise<PullRequestRow> {
    const found: PullRequestRow[] = []
    let pageToken = ''
    do {
      const page = await pullRequests.list(owner, { pageSize: searchPage, pageToken }, signal)
      found.push(
        ...page.items.filter(
          (row) =>
            (url === '' || row.url === url) &&
            (number === 0n || BigInt(row.number) === number) &&
            (repository === '' || row.repository === repository),
        ),
      )
      pageToken = page.nextPageToken
    } while (pageToken !== '')
    const [first, second] = found
    if (!first) {
      const named = url === '' ? `number ${number}${repository === '' ? '' : ` in ${repository}`}` : url
      throw new TuttiError('not_found', `There is no pull request ${named}.`, {
        field: url === '' ? 'key.number' : 'key.url',
      })
    }
    if (second) {
      throw new TuttiError(
        'invalid_argument',
        `Several repositories have a pull request ${number}. Name one with key.repository: ${found.map((row) => row.repository).join(', ')}.`,
        { field: 'key.repository' },
      )
    }
    return first
  }
}
