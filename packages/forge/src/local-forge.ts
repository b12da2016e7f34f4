import { TuttiError, type Clock, visibleText } from '@tutti/core'
import type { Mirrors } from '@tutti/git'
import type { PullRequestCatalog, PullRequestRow } from '@tutti/store'
import { cutBody } from './describe.ts'
import { maxTitleLength } from './limits.ts'
import type { Forge, PullRequest } from './port.ts'
import { cutText } from './safe-markdown.ts'

export interface LocalForgeOptions {
  readonly catalog: PullRequestCatalog
  readonly mirrors: Pick<Mirrors, 'defaultBranch'>
  readonly clock: Clock
  /** Where pull requests can be seen, without a slash at the end. */
  readonly urlBase: string
  /** The location of a repository for the mirrors. Default: the repository is its own location. */
  readonly locate?: (owner: string, repository: string, signal: AbortSignal) => Promise<string>
}

/**
 * A forge of records: branches live in the repository itself, pull requests in the catalog. Comments stand at the end of the
 * body, since the record has nothing else that a person would look at.
 */
export function createLocalForge(options: LocalForgeOptions): Forge {
  const { catalog, mirrors, clock, urlBase } = options
  const locate = options.locate ?? ((_owner: string, repository: string) => Promise.resolve(repository))
  const urlOf = (repository: string) => (number: number) =>
    `${urlBase}/pull-requests/${encodeURIComponent(repository)}/${number}`

  const save = async (
    row: Omit<PullRequestRow, 'number' | 'url'>,
    signal: AbortSignal,
  ): Promise<PullRequest> => {
    const { number: _number, url: _url, ...content } = row as PullRequestRow
    const texts = { title: cutTitle(row.title), body: cutBody(row.body) }
    return toPullRequest(
      await catalog.upsert({ ...content, ...texts, updatedAt: clock.now() }, urlOf(row.repository), signal),
    )
  }

  const getOpen = async (owner: string, repository: string, number: number, signal: AbortSignal) => {
    const row = await catalog.get(owner, repository, number, signal)
    if (row.state === 'open') return row
    throw new TuttiError(
      'failed_precondition',
      `Pull request ${number} is ${row.state}; deliver again to open a new one.`,
      {
        number,
        state: row.state,
      },
    )
  }

  return {
    name: 'local',

    async defaultBranch(owner, repository, signal) {
      return await mirrors.defaultBranch(await locate(owner, repository, signal), signal)
    },

    async findOpen(owner, repository, head, base, signal) {
      const row = await catalog.findOpen(repository, head, base, signal)
      return row && row.owner === owner ? toPullRequest(row) : undefined
    },

    async create(owner, repository, request, signal) {
      const now = clock.now()
      return await save(
        { ...request, owner, repository, state: 'open', createdAt: now, updatedAt: now },
        signal,
      )
    },

    async update(owner, repository, number, change, signal) {
      return await save({ ...(await getOpen(owner, repository, number, signal)), ...change }, signal)
    },

    async comment(owner, repository, number, body, signal) {
      const row = await getOpen(owner, repository, number, signal)
      const comment = `\n\n---\n\n${body.trim()}\n`
      // A repeat after a lost answer says it once.
      if (row.body.includes(comment.trimEnd())) return
      await save({ ...row, body: `${row.body.trimEnd()}${comment}` }, signal)
    },

    async get(owner, repository, number, signal) {
      return toPullRequest(await catalog.get(owner, repository, number, signal))
    },
  }
}

const cutTitle = (title: string): string =>
  cutText(visibleText(title.trim().replaceAll(/\s+/g, ' ')), maxTitleLength)

const toPullRequest = ({
  number,
  url,
  head,
  base,
  headCommit,
  title,
  body,
  draft,
  state,
}: PullRequestRow): PullRequest => ({
  number,
  url,
  head,
  base,
  headCommit,
  title,
  body,
  draft,
  state,
})
