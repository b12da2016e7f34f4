import { createHash, randomBytes } from 'node:crypto'
import {
  agentId,
  ensembleId,
  initialAgentState,
  type AgentState,
  type Attempt,
  type BlobId,
  type EnsembleId,
} from '@tutti/core'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Catalog, NewAgent, NewEnsemble, PullRequestRow } from './port.ts'

const never = new AbortController().signal
const blob = (text: string): BlobId => `sha256_${createHash('sha256').update(text).digest('hex')}`
const firstPage = { pageSize: 50, pageToken: '' }
const running: AgentState = { status: 'RUNNING', paused: false, queue: [] }
const idle: AgentState = { status: 'IDLE', paused: false, reason: 'completed', queue: [] }

const newAgent = (fields: Partial<NewAgent> = {}): NewAgent => ({
  bcId: agentId(Date.now(), randomBytes(10)),
  owner: 'ann',
  title: 'Fix it',
  repository: 'shop',
  agentSpec: 'command:fix',
  configBlobId: blob('config'),
  createdAt: 1000,
  state: initialAgentState,
  ...fields,
})

const newEnsemble = (fields: Partial<NewEnsemble> = {}): NewEnsemble => ({
  ensembleId: ensembleId(Date.now(), randomBytes(10)),
  owner: 'ann',
  title: 'Fix it',
  repository: 'shop',
  strategy: 'pick',
  configBlobId: blob('config'),
  childIds: [],
  createdAt: 1000,
  ...fields,
})

const newPullRequest = (
  fields: Partial<PullRequestRow> & Pick<PullRequestRow, 'source'>,
): Omit<PullRequestRow, 'number' | 'url'> => ({
  repository: 'shop',
  owner: 'ann',
  title: 'Fix it',
  body: '',
  head: 'tutti/fix',
  headCommit: 'c1',
  base: 'main',
  baseCommit: 'c0',
  draft: false,
  state: 'open',
  createdAt: 1000,
  updatedAt: 1000,
  ...fields,
})

/** What every catalog must do: `testCatalogContract('sqlite', () => …)`. */
export function testCatalogContract(name: string, createCatalog: () => Promise<Catalog>): void {
  describe(`catalog: ${name}`, () => {
    let catalog: Catalog
    beforeEach(async () => {
      catalog = await createCatalog()
    })

    describe('agents', () => {
      test('gives back what was inserted, to its owner only, and takes an id once', async () => {
        const agent = newAgent()
        await catalog.agents.insert(agent, never)
        expect(await catalog.agents.get('ann', agent.bcId, never)).toEqual({
          ...agent,
          updatedAt: 1000,
          starting: true,
          hadSandbox: false,
          incarnation: 0,
          turns: 0,
          filesChanged: 0,
          logSequence: 0,
        })
        await expect(catalog.agents.get('bob', agent.bcId, never)).rejects.toMatchObject({
          code: 'not_found',
        })
        await expect(catalog.agents.insert(agent, never)).rejects.toMatchObject({
          code: 'already_exists',
          detail: { id: agent.bcId },
        })
      })

      test('applies a projection only when it is not older than the state, and only the fields that it has', async () => {
        const { bcId } = newAgent()
        await catalog.agents.insert(newAgent({ bcId }), never)
        const question = { questionId: 'q1', text: 'Really?', options: ['yes', 'no'], default: 'no' }
        const first = {
          logSequence: 5,
          state: running,
          branch: 'b',
          turns: 1,
          hadSandbox: true,
          openQuestion: question,
        }
        expect(await catalog.agents.project(bcId, first, never)).toBe(true)
        expect(await catalog.agents.project(bcId, { logSequence: 4, state: idle }, never)).toBe(false)
        expect(await catalog.agents.get('ann', bcId, never)).toMatchObject({ ...first, incarnation: 0 })
        expect(await catalog.agents.project(bcId, { logSequence: 5, turns: 2 }, never)).toBe(true)
        expect(
          await catalog.agents.project(bcId, { logSequence: 6, openQuestion: null, commit: 'c' }, never),
        ).toBe(true)
        const row = await catalog.agents.get('ann', bcId, never)
        expect(row).toMatchObject({ state: running, branch: 'b', turns: 2, commit: 'c', logSequence: 5 })
        expect(row).not.toHaveProperty('openQuestion')
        // A state that is written late is none the older for what was written without one meanwhile.
        expect(await catalog.agents.project(bcId, { logSequence: 7, branch: 'd' }, never)).toBe(true)
        expect(await catalog.agents.project(bcId, { logSequence: 6, state: idle }, never)).toBe(true)
        expect(await catalog.agents.get('ann', bcId, never)).toMatchObject({
          state: idle,
          branch: 'd',
          logSequence: 6,
        })
        await expect(
          catalog.agents.project(newAgent().bcId, { logSequence: 1 }, never),
        ).rejects.toMatchObject({ code: 'not_found' })
      })

      test('remembers the state that stands for the latest position, and leaves projections alone', async () => {
        const agent = newAgent()
        await catalog.agents.insert(agent, never)
        const saved = {
          blobId: blob('state'),
          offsetKey: 'log-0000-0000000000000007-a',
          savedAt: 2000,
          status: 'RUNNING',
          version: 1,
        } as const
        const older = { ...saved, offsetKey: 'log-0000-0000000000000006-a', blobId: blob('older') }
        expect(await catalog.agents.saveState(agent.bcId, saved, never)).toBe(true)
        expect(await catalog.agents.saveState(agent.bcId, older, never)).toBe(false)
        expect(await catalog.agents.project(agent.bcId, { logSequence: 1, turns: 3 }, never)).toBe(true)
        expect(await catalog.agents.get('ann', agent.bcId, never)).toMatchObject({
          turns: 3,
          savedState: saved,
        })
        expect(await catalog.agents.saveState(newAgent().bcId, saved, never)).toBe(false)
      })

      test('lists pages of an owner newest first, also while rows are added', async () => {
        const agents = Array.from({ length: 7 }, (_, index) =>
          newAgent({ bcId: agentId(1000 + index, randomBytes(10)) }),
        )
        for (const agent of agents) await catalog.agents.insert(agent, never)
        await catalog.agents.insert(newAgent({ owner: 'bob' }), never)
        const seen: string[] = []
        for (let pageToken = ''; ;) {
          const page = await catalog.agents.list('ann', {}, { pageSize: 3, pageToken }, never)
          seen.push(...page.items.map(({ bcId }) => bcId))
          if (page.nextPageToken === '') break
          pageToken = page.nextPageToken
          await catalog.agents.insert(newAgent(), never)
        }
        expect(seen).toEqual(agents.map(({ bcId }) => bcId).toReversed())
      })

      test('filters by status and ensemble', async () => {
        const ensemble = newEnsemble()
        const [a, b, c] = [
          newAgent({ ensembleId: ensemble.ensembleId, childIndex: 0 }),
          newAgent(),
          newAgent(),
        ]
        for (const agent of [a, b, c]) await catalog.agents.insert(agent, never)
        await catalog.agents.project(b.bcId, { logSequence: 1, state: idle }, never)
        const ids = async (filter: Parameters<Catalog['agents']['list']>[1]) =>
          (await catalog.agents.list('ann', filter, firstPage, never)).items.map(({ bcId }) => bcId)
        expect(await ids({ statuses: ['IDLE'] })).toEqual([b.bcId])
        expect(await ids({ statuses: ['IDLE', 'UNSPECIFIED'] })).toHaveLength(3)
        expect(await ids({ statuses: [] })).toEqual([])
        expect(await ids({ ensembleId: ensemble.ensembleId })).toEqual([a.bcId])
      })

      test('refuses page tokens that it did not give for this list', async () => {
        for (let index = 0; index < 3; index += 1) await catalog.agents.insert(newAgent(), never)
        const { nextPageToken } = await catalog.agents.list('ann', {}, { pageSize: 1, pageToken: '' }, never)
        const bad = { code: 'invalid_argument', detail: { field: 'page_token' } }
        for (const pageToken of ['x', `${nextPageToken}A`, nextPageToken.slice(1), '😀', "' OR 1=1 --"]) {
          await expect(
            catalog.agents.list('ann', {}, { pageSize: 1, pageToken }, never),
          ).rejects.toMatchObject(bad)
        }
        const other = { pageSize: 1, pageToken: nextPageToken }
        await expect(catalog.agents.list('bob', {}, other, never)).rejects.toMatchObject(bad)
        await expect(catalog.agents.list('ann', { statuses: ['IDLE'] }, other, never)).rejects.toMatchObject(
          bad,
        )
        await expect(catalog.ensembles.list('ann', other, never)).rejects.toMatchObject(bad)
        await expect(
          catalog.agents.list('ann', {}, { pageSize: -1, pageToken: '' }, never),
        ).rejects.toMatchObject({
          detail: { field: 'page_size' },
        })
      })

      test('finds for sweeps what is still starting and what rests for long', async () => {
        const [early, late] = [newAgent({ createdAt: 10 }), newAgent({ owner: 'bob', createdAt: 20 })]
        for (const agent of [early, late]) await catalog.agents.insert(agent, never)
        const starting = async (before: number) =>
          (await catalog.agents.listStarting(before, never)).map(({ bcId }) => bcId)
        expect(await starting(21)).toEqual([early.bcId, late.bcId])
        expect(await starting(20)).toEqual([early.bcId])
        await catalog.agents.markStarted(early.bcId, never)
        expect(await starting(21)).toEqual([late.bcId])

        await catalog.agents.project(early.bcId, { logSequence: 1, state: idle }, never)
        await catalog.agents.project(
          late.bcId,
          { logSequence: 1, state: { ...idle, status: 'EXPIRED' } },
          never,
        )
        const { updatedAt } = await catalog.agents.get('ann', early.bcId, never)
        const inactive = await catalog.agents.listInactive(updatedAt + 1, 10, never)
        expect(inactive.map(({ bcId }) => bcId)).toEqual([early.bcId])
        expect(await catalog.agents.listInactive(updatedAt, 10, never)).toEqual([])
      })
    })

    describe('ensembles', () => {
      test('appear together with their children, or not at all', async () => {
        const ensemble = newEnsemble()
        const children = [0, 1].map((childIndex) => newAgent({ ensembleId: ensemble.ensembleId, childIndex }))
        const childIds = children.map(({ bcId }) => bcId)
        await catalog.ensembles.insert({ ...ensemble, childIds }, children, never)
        expect(await catalog.ensembles.get('ann', ensemble.ensembleId, never)).toEqual({
          ...ensemble,
          childIds,
          updatedAt: 1000,
          starting: true,
          phase: 'UNSPECIFIED',
          logSequence: 0,
        })
        for (const child of children)
          expect(await catalog.agents.get('ann', child.bcId, never)).toMatchObject(child)

        const other = newEnsemble()
        const fresh = newAgent()
        const taken = { code: 'already_exists' }
        await expect(catalog.ensembles.insert(other, [fresh, ...children], never)).rejects.toMatchObject(
          taken,
        )
        const unknown = { code: 'not_found' }
        await expect(catalog.ensembles.get('ann', other.ensembleId, never)).rejects.toMatchObject(unknown)
        await expect(catalog.agents.get('ann', fresh.bcId, never)).rejects.toMatchObject(unknown)
        await expect(catalog.ensembles.get('bob', ensemble.ensembleId, never)).rejects.toMatchObject(unknown)
      })

      test('are projected when newer, started, listed and swept', async () => {
        const ids: EnsembleId[] = []
        for (let index = 0; index < 3; index += 1) {
          const ensemble = newEnsemble({
            ensembleId: ensembleId(1000 + index, randomBytes(10)),
            createdAt: index,
          })
          await catalog.ensembles.insert(ensemble, [], never)
          ids.unshift(ensemble.ensembleId)
        }
        const [id] = ids as [EnsembleId]
        expect(
          await catalog.ensembles.project(id, { logSequence: 3, phase: 'ERROR', reason: 'internal' }, never),
        ).toBe(true)
        expect(await catalog.ensembles.project(id, { logSequence: 2, phase: 'GATHERING' }, never)).toBe(false)
        expect(await catalog.ensembles.project(id, { logSequence: 3, resultBlobId: blob('r') }, never)).toBe(
          true,
        )
        expect(await catalog.ensembles.get('ann', id, never)).toMatchObject({
          phase: 'ERROR',
          reason: 'internal',
          resultBlobId: blob('r'),
          logSequence: 3,
        })
        await catalog.ensembles.markStarted(id, never)
        expect((await catalog.ensembles.listStarting(2, never)).map((row) => row.ensembleId)).toEqual([
          ids[2],
          ids[1],
        ])
        const first = await catalog.ensembles.list('ann', { pageSize: 2, pageToken: '' }, never)
        const second = await catalog.ensembles.list(
          'ann',
          { pageSize: 2, pageToken: first.nextPageToken },
          never,
        )
        expect([...first.items, ...second.items].map((row) => row.ensembleId)).toEqual(ids)
        expect(second.nextPageToken).toBe('')
      })
    })

    test('attempts are replaced per agent and listed in the order of the children', async () => {
      const ensemble = newEnsemble()
      const children = [0, 1].map((childIndex) => newAgent({ ensembleId: ensemble.ensembleId, childIndex }))
      await catalog.ensembles.insert(ensemble, children, never)
      const attempts = children.map(({ bcId }): Attempt => ({
        bcId,
        status: 'IDLE',
        reason: 'completed',
        base: 'c0',
        commit: 'c1',
        filesChanged: 1,
        summary: 'did it',
        detail: '',
      }))
      for (const attempt of attempts.toReversed())
        await catalog.attempts.put(ensemble.ensembleId, attempt, never)
      const [first, second] = attempts as [Attempt, Attempt]
      await catalog.attempts.put(ensemble.ensembleId, { ...first, commit: 'c2' }, never)
      expect(await catalog.attempts.list(ensemble.ensembleId, never)).toEqual([
        { ...first, commit: 'c2' },
        second,
      ])
      await expect(catalog.attempts.put(newEnsemble().ensembleId, first, never)).rejects.toMatchObject({
        code: 'not_found',
      })
    })

    test('pull requests are numbered within their repository, and an open one is updated', async () => {
      const source = newAgent().bcId
      const urlOf = (number: number) => `https://forge/shop/${number}`
      const first = await catalog.pullRequests.upsert(newPullRequest({ source }), urlOf, never)
      expect(first).toMatchObject({ number: 1, url: 'https://forge/shop/1', head: 'tutti/fix' })
      const again = newPullRequest({
        source,
        title: 'Better',
        headCommit: 'c2',
        updatedAt: 2000,
        createdAt: 2000,
      })
      expect(await catalog.pullRequests.upsert(again, urlOf, never)).toEqual({
        ...first,
        title: 'Better',
        headCommit: 'c2',
        updatedAt: 2000,
      })
      const many = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          catalog.pullRequests.upsert(newPullRequest({ source, head: `h${index}` }), urlOf, never),
        ),
      )
      expect(many.map(({ number }) => number).toSorted((a, b) => a - b)).toEqual([2, 3, 4, 5, 6, 7, 8, 9])
      for (const { number, url } of many) expect(url).toBe(urlOf(number))
      const elsewhere = await catalog.pullRequests.upsert(
        newPullRequest({ source, repository: 'other' }),
        urlOf,
        never,
      )
      expect(elsewhere.number).toBe(1)

      expect(await catalog.pullRequests.findOpen('shop', 'tutti/fix', 'main', never)).toMatchObject({
        number: 1,
      })
      await catalog.pullRequests.upsert(newPullRequest({ source, state: 'closed' }), urlOf, never)
      expect(await catalog.pullRequests.findOpen('shop', 'tutti/fix', 'main', never)).toBeUndefined()
      expect((await catalog.pullRequests.upsert(newPullRequest({ source }), urlOf, never)).number).toBe(10)
      expect(await catalog.pullRequests.get('ann', 'shop', 1, never)).toMatchObject({ state: 'closed' })
      await expect(catalog.pullRequests.get('bob', 'shop', 1, never)).rejects.toMatchObject({
        code: 'not_found',
      })
      const page = await catalog.pullRequests.list('ann', { pageSize: 6, pageToken: '' }, never)
      const rest = await catalog.pullRequests.list(
        'ann',
        { pageSize: 6, pageToken: page.nextPageToken },
        never,
      )
      expect(
        new Set([...page.items, ...rest.items].map(({ url, repository }) => repository + url)).size,
      ).toBe(11)
    })

    describe('leases', () => {
      const asking = (holder: string, slots = 2, kind: 'agent' | 'verify' = 'agent') =>
        catalog.leases.acquire({ host: 'host', kind, holder, slots, now: 1 }, never)

      test('are granted in order of arrival; asking again keeps the place', async () => {
        const positions = async (...holders: string[]) => {
          const found: number[] = []
          for (const holder of holders) found.push((await asking(holder)).position)
          return found
        }
        expect(await positions('a', 'b', 'c', 'd', 'c', 'a', 'd')).toEqual([0, 0, 1, 2, 1, 0, 2])
        await catalog.leases.release('host', 'b', never)
        expect(await positions('d', 'c')).toEqual([1, 0])
        await catalog.leases.release('host', 'd', never)
        await catalog.leases.release('host', 'd', never)
        await catalog.leases.release('host', 'a', never)
        expect(await positions('e', 'f')).toEqual([0, 1])
        expect(await catalog.leases.list('host', never)).toEqual([
          { host: 'host', kind: 'agent', holder: 'c', owner: '', waitingSince: 1, grantedAt: 1 },
          { host: 'host', kind: 'agent', holder: 'e', owner: '', waitingSince: 1, grantedAt: 1 },
          { host: 'host', kind: 'agent', holder: 'f', owner: '', waitingSince: 1 },
        ])
      })

      test('keep kinds and hosts apart', async () => {
        expect((await asking('a', 1)).position).toBe(0)
        expect((await asking('v', 1, 'verify')).position).toBe(0)
        expect((await asking('b', 1)).position).toBe(1)
        const elsewhere = { host: 'elsewhere', kind: 'agent', holder: 'b', slots: 1, now: 1 } as const
        expect((await catalog.leases.acquire(elsewhere, never)).position).toBe(0)
      })

      test('never exceed the slots when many ask and give back at once', async () => {
        let held = 0
        let most = 0
        await Promise.all(
          Array.from({ length: 12 }, async (_, index) => {
            while ((await asking(`holder-${index}`, 3)).position > 0);
            most = Math.max(most, (held += 1))
            await catalog.leases.list('host', never)
            held -= 1
            await catalog.leases.release('host', `holder-${index}`, never)
          }),
        )
        expect(most).toBeLessThanOrEqual(3)
        expect(await catalog.leases.list('host', never)).toEqual([])
      })
    })

    test('an idempotency key gives its first answer, and none to another request', async () => {
      const claim = (owner: string, digest: string, answer: string) =>
        catalog.idempotency.claim(owner, 'key', digest, answer, never)
      const answers = await Promise.all(['1', '2', '3'].map((answer) => claim('ann', 'd', answer)))
      expect(answers.filter(({ repeated }) => !repeated)).toHaveLength(1)
      expect(new Set(answers.map(({ answer }) => answer)).size).toBe(1)
      await expect(claim('ann', 'other', 'x')).rejects.toMatchObject({
        code: 'already_exists',
        detail: { key: 'key' },
      })
      expect(await claim('bob', 'other', 'x')).toEqual({ answer: 'x', repeated: false })
    })

    test('blobs are readable for owners that they were added for', async () => {
      const blobs = Array.from({ length: 1500 }, (_, index) => blob(`${index}`))
      await catalog.blobRefs.add('ann', [...blobs, blob('0')], never)
      await catalog.blobRefs.add('ann', blobs, never)
      await catalog.blobRefs.add('ann', [], never)
      expect(await catalog.blobRefs.has('ann', blob('1499'), never)).toBe(true)
      expect(await catalog.blobRefs.has('bob', blob('0'), never)).toBe(false)
    })

    test('blobs that nobody has used are removed, and those kept for ever, used since or used again are not', async () => {
      const { blobRefs } = catalog
      const [old, kept, both, nobodys] = ['old', 'kept', 'both', 'nobodys'].map(blob) as BlobId[]
      await blobRefs.use('ann', [old!, both!], never)
      await blobRefs.add('ann', [kept!, both!], never)
      // A later use makes nothing of it that could go.
      await blobRefs.use('ann', [kept!], never)
      await blobRefs.use('bob', [kept!], never)
      const all = [old!, kept!, both!, nobodys!]
      expect(await blobRefs.beginRemoval(all, 1, never)).toEqual([nobodys])
      await blobRefs.endRemoval([nobodys!], 1, never)
      const later = Date.now() + 60_000
      expect(await blobRefs.removable(all, later, never)).toEqual([old, nobodys])
      expect(await blobRefs.beginRemoval(all, later, never)).toEqual([old, nobodys])
      expect(await blobRefs.removable(all, later, never)).toEqual([])
      expect(await blobRefs.beginRemoval(all, later, never)).toEqual([])
      await blobRefs.endRemoval([old!, nobodys!], later, never)
      expect(await blobRefs.has('ann', old!, never)).toBe(false)
      expect(await blobRefs.has('ann', kept!, never)).toBe(true)
      expect(await blobRefs.beginRemoval([], later, never)).toEqual([])
    })

    test('whoever is about to use a blob waits for its removal, and it is the new use that counts', async () => {
      const { blobRefs } = catalog
      const one = blob('one')
      expect(await blobRefs.beginRemoval([one], Date.now() - 1000, never)).toEqual([one])
      let isUsed = false
      const using = blobRefs.use('ann', [one], never).then(() => (isUsed = true))
      // The row is there before the waiting.
      while (!(await blobRefs.has('ann', one, never)));
      expect(isUsed).toBe(false)
      await blobRefs.endRemoval([one], Date.now() - 1000, never)
      await using
      expect(await blobRefs.has('ann', one, never)).toBe(true)
      expect(await blobRefs.beginRemoval([one], Date.now() - 1000, never)).toEqual([])
    })

    test('a removal that did not end is another sweep’s, once', async () => {
      const { blobRefs } = catalog
      const one = blob('one')
      await blobRefs.beginRemoval([one], 1, never)
      expect(await blobRefs.takeOverRemovals(Date.now() - 60_000, never)).toEqual([])
      const begunBefore = Date.now() + 1
      expect(await blobRefs.takeOverRemovals(begunBefore, never)).toEqual([one])
      await blobRefs.endRemoval([one], 1, never)
      expect(await blobRefs.takeOverRemovals(Date.now() + 60_000, never)).toEqual([])
    })

    test('a scan has every agent once, of all owners', async () => {
      const before = (await catalog.agents.scan('', 1000, never)).length
      const ids: string[] = []
      for (const owner of ['ann', 'bob', 'cid']) {
        const agent = { ...newAgent(), owner }
        await catalog.agents.insert(agent, never)
        ids.push(agent.bcId)
      }
      const seen: string[] = []
      for (let after = ''; ;) {
        const page = await catalog.agents.scan(after, 2, never)
        if (page.length === 0) break
        seen.push(...page.map(({ bcId }) => bcId))
        after = seen.at(-1)!
      }
      expect(seen).toHaveLength(before + 3)
      expect(seen).toEqual([...new Set(seen)].toSorted())
      for (const id of ids) expect(seen).toContain(id)
    })

    test('a repository keeps its name; a taken name gets a number', async () => {
      const add = (location: string, owner = 'ann') =>
        catalog.repositories.add(owner, 'shop', location, 5, never)
      expect(await add('/a/shop')).toEqual({ name: 'shop', owner: 'ann', location: '/a/shop', createdAt: 5 })
      expect((await add('/b/shop')).name).toBe('shop-2')
      expect((await add('/a/shop')).name).toBe('shop')
      expect((await add('/c/shop', 'bob')).name).toBe('shop')
      const names = await Promise.all(['/d', '/d', '/d'].map(async (location) => (await add(location)).name))
      expect(new Set(names)).toEqual(new Set(['shop-3']))
      expect(await catalog.repositories.get('ann', 'shop-2', never)).toMatchObject({ location: '/b/shop' })
      await expect(catalog.repositories.get('bob', 'shop-2', never)).rejects.toMatchObject({
        code: 'not_found',
      })
      expect((await catalog.repositories.list('ann', never)).map((row) => row.name)).toEqual([
        'shop',
        'shop-2',
        'shop-3',
      ])
    })

    test('repositories in use: those of every owner with an agent or ensemble, each once; a URL as it is', async () => {
      const { name } = await catalog.repositories.add('ann', 'used', '/in/use', 5, never)
      await catalog.repositories.add('bob', name, '/of/bob', 5, never)
      await catalog.repositories.add('ann', 'idle', '/idle', 5, never)
      const url = 'https://example.com/in-use.git'
      for (const repository of [name, name, url])
        await catalog.agents.insert({ ...newAgent(), repository }, never)
      const inUse = await catalog.repositories.listInUse(never)
      expect(inUse.filter((location) => ['/in/use', url].includes(location)).toSorted()).toEqual([
        '/in/use',
        url,
      ])
      expect(inUse).not.toContain('/of/bob')
      expect(inUse).not.toContain('/idle')
    })

    test('says cancelled, and stores nothing, when the caller gave up before', async () => {
      const agent = newAgent()
      await expect(catalog.agents.insert(agent, AbortSignal.abort())).rejects.toMatchObject({
        code: 'cancelled',
      })
      await expect(catalog.agents.get('ann', agent.bcId, never)).rejects.toMatchObject({ code: 'not_found' })
    })
  })
}
