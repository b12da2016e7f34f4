import { randomBytes } from 'node:crypto'
import { TuttiError, uuidV7, type Clock } from '@tutti/core'
import type { Selectable } from 'kysely'
import type { PullRequestsTable } from '../schema.ts'
import { makePage, readPage } from './page-token.ts'
import type { PullRequestCatalog, PullRequestRow } from './port.ts'
import type { SqlExecutor } from './sql-executor.ts'

/** Rivals for one number: each round one of them gets it, so that this many at once are served. */
const maxRounds = 100

export function createPullRequestCatalog({
  executor,
  clock,
}: {
  executor: SqlExecutor
  clock: Clock
}): PullRequestCatalog {
  const { db } = executor
  const open = (repository: string, head: string, base: string) =>
    db
      .selectFrom('pull_requests')
      .selectAll()
      .where('repository', '=', repository)
      .where('head', '=', head)
      .where('base', '=', base)
      .where('state', '=', 'open')

  return {
    async upsert(pullRequest, urlOf, signal) {
      const { repository, head, base } = pullRequest
      for (let round = 0; round < maxRounds; round += 1) {
        const [known] = await executor.read(open(repository, head, base), signal)
        const [newest] = await executor.read(
          db
            .selectFrom('pull_requests')
            .select(({ fn }) => fn.max('number').as('number'))
            .where('repository', '=', repository),
          signal,
        )
        const number = (newest?.number ?? 0) + 1
        const { created_at: _, ...changes } = toValues(pullRequest)
        // Either statement does nothing when somebody else was faster; then look again.
        const statement = known
          ? db
              .updateTable('pull_requests')
              .set(changes)
              .where('id', '=', known.id)
              .where('state', '=', 'open')
              .returningAll()
          : db
              .insertInto('pull_requests')
              .values({
                ...toValues(pullRequest),
                id: uuidV7(clock.now(), randomBytes(10)),
                number,
                url: urlOf(number),
              })
              .onConflict((conflict) => conflict.doNothing())
              .returningAll()
        const [written] = await executor.write([statement], signal)
        const [row] = (written?.rows ?? []) as Selectable<PullRequestsTable>[]
        if (row) return toPullRequest(row)
      }
      throw new TuttiError('unavailable', `Too many pull requests for ${repository} at once; try again.`)
    },

    async findOpen(repository, head, base, signal) {
      const [row] = await executor.read(open(repository, head, base), signal)
      return row && toPullRequest(row)
    },

    async get(owner, repository, number, signal) {
      const query = db
        .selectFrom('pull_requests')
        .selectAll()
        .where('owner', '=', owner)
        .where('repository', '=', repository)
        .where('number', '=', number)
      const [row] = await executor.read(query, signal)
      if (row) return toPullRequest(row)
      throw new TuttiError('not_found', `There is no pull request ${number} in ${repository}.`, {
        repository,
        number,
      })
    },

    async list(owner, request, signal) {
      const list = ['pull_requests', owner]
      const place = readPage(request, list)
      const query = db
        .selectFrom('pull_requests')
        .selectAll()
        .where('owner', '=', owner)
        .$if(place.before !== undefined, (select) => select.where('id', '<', place.before ?? ''))
        .orderBy('id', 'desc')
        .limit(place.limit + 1)
      return makePage(await executor.read(query, signal), place, list, (row) => row.id, toPullRequest)
    },
  }
}

const toValues = (pullRequest: Omit<PullRequestRow, 'number' | 'url'>) => ({
  repository: pullRequest.repository,
  owner: pullRequest.owner,
  title: pullRequest.title,
  body: pullRequest.body,
  head: pullRequest.head,
  head_commit: pullRequest.headCommit,
  base: pullRequest.base,
  base_commit: pullRequest.baseCommit,
  draft: pullRequest.draft ? 1 : 0,
  state: pullRequest.state,
  source: pullRequest.source,
  created_at: pullRequest.createdAt,
  updated_at: pullRequest.updatedAt,
})

const toPullRequest = (row: Selectable<PullRequestsTable>): PullRequestRow => ({
  number: row.number,
  repository: row.repository,
  owner: row.owner,
  url: row.url,
  title: row.title,
  body: row.body,
  head: row.head,
  headCommit: row.head_commit,
  base: row.base,
  baseCommit: row.base_commit,
  draft: row.draft === 1,
  state: row.state,
  source: row.source,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})
