import { createManualClock, TuttiError } from '@tutti/core'
import type { PullRequestCatalog, PullRequestRow } from '@tutti/store'
import { expect, test } from 'vitest'
import { testForgeContract } from './contract.ts'
import { createLocalForge } from './local-forge.ts'

const never = new AbortController().signal

/** The catalog's rules in memory; the real one has its own contract suite. */
function createMemoryCatalog(): PullRequestCatalog & { readonly rows: PullRequestRow[] } {
  const rows: PullRequestRow[] = []
  const find = (repository: string, head: string, base: string) =>
    rows.findIndex(
      (row) =>
        row.repository === repository && row.head === head && row.base === base && row.state === 'open',
    )
  return {
    rows,
    upsert(pullRequest, urlOf) {
      const index = find(pullRequest.repository, pullRequest.head, pullRequest.base)
      const number =
        rows[index]?.number ?? rows.filter((row) => row.repository === pullRequest.repository).length + 1
      const row = {
        ...pullRequest,
        number,
        url: urlOf(number),
        createdAt: rows[index]?.createdAt ?? pullRequest.createdAt,
      }
      rows.splice(index === -1 ? rows.length : index, 1, row)
      return Promise.resolve(row)
    },
    findOpen: (repository, head, base) => Promise.resolve(rows[find(repository, head, base)]),
    get(owner, repository, number) {
      const row = rows.find(
        (one) => one.owner === owner && one.repository === repository && one.number === number,
      )
      return row
        ? Promise.resolve(row)
        : Promise.reject(new TuttiError('not_found', 'There is no such pull request.'))
    },
    list: () => Promise.resolve({ items: rows, nextPageToken: '' }),
  }
}

function create() {
  const catalog = createMemoryCatalog()
  const mirrors = {
    defaultBranch: (location: string) => Promise.resolve(location === '/srv/app' ? 'trunk' : 'wrong'),
  }
  const locate = (_owner: string, repository: string) => Promise.resolve(`/srv/${repository}`)
  const clock = createManualClock(1000)
  return {
    catalog,
    forge: createLocalForge({ catalog, mirrors, clock, urlBase: 'http://127.0.0.1:1', locate }),
  }
}

const request = {
  head: 'tutti/x',
  headCommit: '1'.repeat(40),
  base: 'trunk',
  baseCommit: '0'.repeat(40),
  title: 'T\u202e\n x',
  body: 'B',
  draft: false,
  source: 'bc-1',
} as const

testForgeContract('local', () => Promise.resolve({ ...create(), repository: 'app' }))

test('counts from 1 in each repository, with an address that names both', async () => {
  const { forge } = create()
  expect(await forge.create('o', 'app', request, never)).toMatchObject({
    number: 1,
    url: 'http://127.0.0.1:1/pull-requests/app/1',
    title: String.raw`T\u{202e} x`,
  })
  expect((await forge.create('o', 'a/b', request, never)).url).toBe(
    'http://127.0.0.1:1/pull-requests/a%2Fb/1',
  )
})

test('shows a pull request to its owner alone', async () => {
  const { forge } = create()
  await forge.create('o', 'app', request, never)
  expect(await forge.findOpen('p', 'app', 'tutti/x', 'trunk', never)).toBeUndefined()
  await expect(forge.get('p', 'app', 1, never)).rejects.toMatchObject({ code: 'not_found' })
})

test('DEL-08 does not change one that is closed, and opens a new one instead', async () => {
  const { forge, catalog } = create()
  await forge.create('o', 'app', request, never)
  catalog.rows[0] = { ...catalog.rows[0]!, state: 'closed' }
  await expect(forge.update('o', 'app', 1, { title: 'x' }, never)).rejects.toMatchObject({
    code: 'failed_precondition',
  })
  expect((await forge.create('o', 'app', request, never)).number).toBe(2)
})

test('keeps a comment once at the end of the body', async () => {
  const { forge } = create()
  await forge.create('o', 'app', request, never)
  await forge.comment('o', 'app', 1, 'Look here', never)
  await forge.comment('o', 'app', 1, 'Look here', never)
  expect((await forge.get('o', 'app', 1, never)).body).toBe('B\n\n---\n\nLook here\n')
})
