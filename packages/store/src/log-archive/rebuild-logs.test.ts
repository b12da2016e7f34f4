import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createFilesystemArchive,
  createMemoryBlobStore,
  type Archive,
  type BlobStore,
} from '@tutti/blob-store'
import {
  agentId,
  ensembleId,
  initialAgentState,
  systemClock,
  type AgentState,
  type BlobId,
  type LogId,
} from '@tutti/core'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createSqliteStore, type SqliteStore } from '../sqlite/sqlite-store.ts'
import { rebuildLogs } from './rebuild-logs.ts'
import { sealLogs } from './seal-logs.ts'

const never = new AbortController().signal
let folder: string
let archive: Archive
let blobs: BlobStore
let lost: SqliteStore
let rebuilt: SqliteStore

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti-rebuild-'))
  archive = createFilesystemArchive({ root: folder })
  blobs = createMemoryBlobStore()
  lost = await createSqliteStore({ path: ':memory:' })
  rebuilt = await createSqliteStore({ path: ':memory:' })
  await lost.catalog.repositories.add('ann', 'shop', '/gone/shop', 1, never)
})
afterEach(async () => {
  await lost.close()
  await rebuilt.close()
  await rm(folder, { recursive: true })
})

const put = (text: string) => blobs.put(Buffer.from(text), never)
const seal = () =>
  sealLogs(
    { ...lost, archive, clock: systemClock },
    -1,
    (_, error) => {
      throw error
    },
    never,
  )
const rebuild = () => Array.fromAsync(rebuildLogs({ ...rebuilt, archive, blobs, clock: systemClock }, never))
const idle: AgentState = { status: 'IDLE', paused: false, reason: 'completed', queue: [] }

let sequence = 0
const write = (log: LogId, ...events: RunEvent[]) =>
  lost.eventLog.append(
    log,
    { id: `p/${(sequence += 1)}`, epoch: 0, sequence: 1 },
    events.map(encodeRunEvent),
    never,
  )

async function newAgent(
  fields: {
    readonly ensemble?: ReturnType<typeof ensembleId>
    readonly title?: string
    readonly configBlobId?: BlobId
  } = {},
) {
  const bcId = agentId(Date.now(), randomBytes(10))
  const row = {
    bcId,
    owner: 'ann',
    title: fields.title ?? 'Fix it',
    repository: 'shop',
    agentSpec: 'command:x',
    configBlobId: fields.configBlobId ?? (await put('{"config":1}')),
    createdAt: 5,
    state: initialAgentState,
    ...(fields.ensemble && { ensembleId: fields.ensemble, childIndex: 0 }),
  }
  await lost.catalog.agents.insert(row, never)
  await lost.eventLog.create(bcId, 'ann', never)
  return bcId
}

const checkpoint = (commit: string): RunEvent => ({
  type: 'checkpoint',
  incarnation: 3,
  turnId: 't',
  commit,
  tree: 't',
  filesChanged: 2,
  manifestDigest: '',
})

test('an agent at rest is what it was: row, log, base, and who may read its blobs', async () => {
  const bcId = await newAgent()
  const [hash, pack, prompt] = [await put('a file'), await put('a pack'), await put('Fix it, please')]
  const file = { type: 'file_change', incarnation: 3, path: 'a', action: 'created', hash, size: 6 } as const
  await write(bcId, { type: 'user_message', turnId: 't', text: 'Fix it, please', source: 'API' })
  await write(bcId, { type: 'sandbox', incarnation: 3, state: 'ready', commit: 'base' }, file)
  await seal()
  await write(bcId, { type: 'git_state', incarnation: 3, commit: 'g', pack }, checkpoint('c1'))
  await lost.catalog.agents.project(
    bcId,
    {
      logSequence: 5,
      state: idle,
      hadSandbox: true,
      incarnation: 3,
      turns: 1,
      baseCommit: 'base',
      commit: 'c1',
      filesChanged: 2,
    },
    never,
  )
  const savedState = {
    blobId: await put('a state'),
    offsetKey: 'o',
    savedAt: 3,
    status: 'IDLE',
    version: 1,
  } as const
  await lost.catalog.agents.saveState(bcId, savedState, never)
  await lost.catalog.agents.markStarted(bcId, never)
  await seal()

  expect(await rebuild()).toEqual([{ log: bcId, there: false, last: 5 }])
  const before = await lost.catalog.agents.get('ann', bcId, never)
  const after = await rebuilt.catalog.agents.get('ann', bcId, never)
  expect({ ...after, updatedAt: 0 }).toEqual({ ...before, updatedAt: 0 })
  const records = async ({ eventLog }: SqliteStore) => (await eventLog.read(bcId, 0, {}, never)).records
  expect(await records(rebuilt)).toEqual(await records(lost))
  expect(await rebuilt.catalog.repositories.get('ann', 'shop', never)).toMatchObject({
    location: '/gone/shop',
  })
  const claim = rebuilt.catalog.idempotency.claim('ann', `base/${bcId}`, 'base', 'another', never)
  expect(await claim).toEqual({ answer: 'base', repeated: true })
  const { blobRefs } = rebuilt.catalog
  for (const id of [hash, pack, prompt, savedState.blobId, before.configBlobId])
    expect(await blobRefs.has('ann', id, never)).toBe(true)
  const inAYear = Date.now() + 365 * 24 * 3_600_000
  expect(await blobRefs.removable([hash, pack, prompt], inAYear, never)).toEqual([hash])

  expect(await rebuild()).toEqual([{ log: bcId, there: true, last: 5 }])
  expect(await records(rebuilt)).toEqual(await records(lost))
})

test('one that was at work is in ERROR, and its turn waits', async () => {
  const bcId = await newAgent()
  const turn = { turnId: 't1', promptBlobId: await put('one'), source: 'API' }
  const state: AgentState = {
    status: 'RUNNING',
    paused: false,
    current: turn,
    queue: [{ ...turn, turnId: 't2' }],
  }
  await write(bcId, { type: 'turn_started', turnId: 't1', turn: 1, incarnation: 1, agent: 'x' })
  await lost.catalog.agents.project(bcId, { logSequence: 1, state }, never)
  await seal()
  await rebuild()
  const row = await rebuilt.catalog.agents.get('ann', bcId, never)
  expect(row.state).toMatchObject({ status: 'ERROR', reason: 'sandbox_lost' })
  expect(row.state.queue.map(({ turnId }) => turnId)).toEqual(['t1', 't2'])
  const { records } = await rebuilt.eventLog.read(bcId, 1, {}, never)
  expect(records.map(({ body }) => JSON.parse(body) as RunEvent)).toMatchObject([
    { type: 'status', status: 'ERROR', reason: 'sandbox_lost', queued: 2 },
  ])
  await rebuild()
  expect((await rebuilt.eventLog.head(bcId, never)).last).toBe(2)
})

test('an ensemble comes back with its attempts and its agents', async () => {
  const id = ensembleId(Date.now(), randomBytes(10))
  const bcId = await newAgent({ ensemble: id })
  const row = {
    ensembleId: id,
    owner: 'ann',
    title: 'All',
    repository: 'shop',
    strategy: 'merge',
    createdAt: 4,
  }
  const prompt = await put('the prompt of all')
  const configBlobId = await put(JSON.stringify({ promptBlobId: prompt }))
  await lost.catalog.ensembles.insert({ ...row, configBlobId, childIds: [bcId] }, [], never)
  await lost.eventLog.create(id, 'ann', never)
  await write(bcId, checkpoint('c1'))
  await write(id, { type: 'phase', phase: 'COMPLETED', reason: 'completed' })
  const resultBlobId = await put('{}')
  await lost.catalog.ensembles.project(
    id,
    { logSequence: 1, phase: 'COMPLETED', reason: 'completed', resultBlobId },
    never,
  )
  const attempt = {
    bcId,
    status: 'IDLE',
    reason: 'completed',
    base: 'b',
    commit: 'c1',
    filesChanged: 1,
    summary: '',
    detail: '',
  } as const
  await lost.catalog.attempts.put(id, attempt, never)
  await seal()
  expect((await rebuild()).map(({ log }) => log)).toEqual([bcId, id])
  expect(await rebuilt.catalog.ensembles.get('ann', id, never)).toMatchObject({
    phase: 'COMPLETED',
    resultBlobId,
    childIds: [bcId],
    starting: false,
  })
  expect(await rebuilt.catalog.attempts.list(id, never)).toEqual([attempt])
  const { items } = await rebuilt.catalog.agents.list(
    'ann',
    { ensembleId: id },
    { pageSize: 5, pageToken: '' },
    never,
  )
  expect(items.map(({ bcId: child }) => child)).toEqual([bcId])
  for (const blob of [prompt, configBlobId, resultBlobId])
    expect(await rebuilt.catalog.blobRefs.has('ann', blob, never)).toBe(true)
})

test('a hash in a title, a question or a setting lets nobody read, and the prompt of a turn does', async () => {
  const [secret, prompt, waiting] = [await put('of bob'), await put('one'), await put('two')]
  const configBlobId = await put(JSON.stringify({ promptSuffix: secret, setupCommand: `: ${secret}` }))
  const bcId = await newAgent({ title: `Show ${secret}`, configBlobId })
  const turn = { turnId: 't1', promptBlobId: prompt, source: 'API' }
  const queue = [{ ...turn, turnId: 't2', promptBlobId: waiting }]
  const state: AgentState = { status: 'RUNNING', paused: false, current: turn, queue }
  await write(bcId, { type: 'turn_started', turnId: 't1', turn: 1, incarnation: 1, agent: 'x' })
  const openQuestion = { questionId: 'q', text: secret }
  await lost.catalog.agents.project(bcId, { logSequence: 1, state, openQuestion }, never)
  await seal()
  await rebuild()
  const may = (id: BlobId) => rebuilt.catalog.blobRefs.has('ann', id, never)
  expect(await Promise.all([prompt, waiting, configBlobId].map(may))).toEqual([true, true, true])
  expect(await may(secret)).toBe(false)
})

test('what the database has is left alone: an agent at work, an ensemble under way, what both became since', async () => {
  const id = ensembleId(Date.now(), randomBytes(10))
  const bcId = await newAgent({ ensemble: id })
  const configBlobId = await put('{"config":2}')
  const row = {
    ensembleId: id,
    owner: 'ann',
    title: 'All',
    repository: 'shop',
    strategy: 'merge',
    createdAt: 4,
  }
  await lost.catalog.ensembles.insert({ ...row, configBlobId, childIds: [bcId] }, [], never)
  await lost.eventLog.create(id, 'ann', never)
  await write(bcId, { type: 'turn_started', turnId: 't1', turn: 1, incarnation: 1, agent: 'x' })
  await write(id, { type: 'phase', phase: 'CHILDREN_RUNNING' })
  const current = { turnId: 't1', promptBlobId: await put('one'), source: 'API' }
  const state: AgentState = { status: 'RUNNING', paused: false, current, queue: [] }
  await lost.catalog.agents.project(bcId, { logSequence: 1, state }, never)
  await lost.catalog.ensembles.project(id, { logSequence: 1, phase: 'CHILDREN_RUNNING' }, never)
  await seal()
  await lost.catalog.agents.project(bcId, { logSequence: 1, state, turns: 7 }, never)
  const attempt = {
    bcId,
    status: 'IDLE',
    reason: 'completed',
    base: 'b',
    commit: 'c1',
    filesChanged: 1,
    summary: 'new',
    detail: '',
  } as const
  await lost.catalog.attempts.put(id, attempt, never)
  const all = async () => ({
    agent: await lost.catalog.agents.get('ann', bcId, never),
    ensemble: await lost.catalog.ensembles.get('ann', id, never),
    attempts: await lost.catalog.attempts.list(id, never),
    heads: [await lost.eventLog.head(bcId, never), await lost.eventLog.head(id, never)],
  })
  const before = await all()
  const again = rebuildLogs({ ...lost, archive, blobs, clock: systemClock }, never)
  expect(await Array.fromAsync(again)).toMatchObject([{ there: true }, { there: true }])
  expect(await all()).toEqual(before)
})

test.each(['agents.insert', 'agents.saveState', 'agents.markStarted', 'idempotency.claim', 'agents.project'])(
  'a rebuild that was killed after %s goes on',
  async (step) => {
    const bcId = await newAgent()
    await write(bcId, { type: 'sandbox', incarnation: 1, state: 'ready', commit: 'base' })
    const state: AgentState = { status: 'RUNNING', paused: false, queue: [] }
    await lost.catalog.agents.project(bcId, { logSequence: 1, state, baseCommit: 'base' }, never)
    const savedState = {
      blobId: await put('s'),
      offsetKey: 'o',
      savedAt: 3,
      status: 'IDLE',
      version: 1,
    } as const
    await lost.catalog.agents.saveState(bcId, savedState, never)
    await seal()
    const [aggregate, method] = step.split('.') as ['agents', 'insert']
    const catalog = {
      ...rebuilt.catalog,
      [aggregate]: {
        ...rebuilt.catalog[aggregate],
        [method]: async (...args: Parameters<SqliteStore['catalog']['agents']['insert']>) => {
          await rebuilt.catalog[aggregate][method](...args)
          throw new Error('killed')
        },
      },
    }
    const killed = rebuildLogs({ ...rebuilt, catalog, archive, blobs, clock: systemClock }, never)
    await expect(Array.fromAsync(killed)).rejects.toThrow('killed')
    await rebuild()
    expect(await rebuilt.catalog.agents.get('ann', bcId, never)).toMatchObject({
      state: { status: 'ERROR' },
      starting: false,
      savedState,
      logSequence: 2,
    })
    const claim = rebuilt.catalog.idempotency.claim('ann', `base/${bcId}`, 'base', 'another', never)
    expect(await claim).toEqual({ answer: 'base', repeated: true })
    expect((await rebuilt.eventLog.head(bcId, never)).last).toBe(2)
  },
)

test('a database that is older than the archive is brought up to it', async () => {
  const bcId = await newAgent()
  await write(bcId, { type: 'text_delta', text: 'one' })
  await lost.catalog.agents.project(bcId, { logSequence: 1, state: idle }, never)
  await seal()
  await rebuild()
  await write(bcId, { type: 'text_delta', text: 'two' })
  await lost.catalog.agents.project(bcId, { logSequence: 2, state: idle, turns: 2 }, never)
  await seal()
  await rebuild()
  expect(await rebuilt.catalog.agents.get('ann', bcId, never)).toMatchObject({ logSequence: 2, turns: 2 })
})

test('of a log with a damaged or missing segment, what comes before it is rebuilt, and the rest is told of', async () => {
  const bcId = await newAgent()
  await lost.catalog.agents.project(bcId, { logSequence: 0, state: idle }, never)
  for (const text of ['one', 'two', 'three']) {
    await write(bcId, { type: 'text_delta', text })
    await seal()
  }
  const names = await Array.fromAsync(archive.list(`logs/run_${bcId}.`, never))
  expect(names).toEqual(
    [1, 2, 3].map((at) => `logs/run_${bcId}.000000000000000${at}-000000000000000${at}.jsonl`),
  )
  await archive.put(names[1]!, Buffer.from('{"jsonrpc"'), never)
  expect(await rebuild()).toEqual([
    { log: bcId, there: false, last: 1, problem: expect.stringContaining('damaged') as string },
  ])
  expect((await rebuilt.eventLog.head(bcId, never)).last).toBe(1)
})

test.each([
  ['missing', 'Its segment from 1 to 1 is missing. Put it back'],
  ['damaged', 'damaged'],
])('of an agent whose first segment is %s nothing is there, and that is told', async (how, problem) => {
  const bcId = await newAgent()
  for (const text of ['one', 'two']) {
    await write(bcId, { type: 'text_delta', text })
    await seal()
  }
  const [first] = await Array.fromAsync(archive.list(`logs/run_${bcId}.`, never))
  if (how === 'missing') await rm(join(folder, first!))
  else await archive.put(first!, Buffer.from('{"jsonrpc"'), never)
  const told = { log: bcId, there: false, absent: true, last: 0 }
  expect(await rebuild()).toEqual([{ ...told, problem: expect.stringContaining(problem) as string }])
  await expect(rebuilt.catalog.agents.get('ann', bcId, never)).rejects.toMatchObject({ code: 'not_found' })
})

test('two who seal at once, and one that was killed before it could remember it, leave one log', async () => {
  const bcId = await newAgent()
  await write(bcId, { type: 'text_delta', text: 'one' })
  const killed = {
    ...lost,
    eventLog: {
      ...lost.eventLog,
      archiveSegment: async (...[log, , signal]: Parameters<SqliteStore['eventLog']['archiveSegment']>) => {
        await lost.eventLog.archiveSegment(
          log,
          async (records) => {
            await archive.put(
              `logs/run_${log}.0000000000000001-000000000000000${records.length}.jsonl`,
              Buffer.from('cut'),
              never,
            )
            throw new Error('killed')
          },
          signal,
        )
        return false
      },
    },
  }
  await sealLogs({ ...killed, archive, clock: systemClock }, -1, () => {}, never)
  await Promise.all([seal(), seal()])
  await write(bcId, { type: 'text_delta', text: 'two' })
  await Promise.all([seal(), seal()])
  expect(await rebuild()).toEqual([{ log: bcId, there: false, last: 2 }])
})
