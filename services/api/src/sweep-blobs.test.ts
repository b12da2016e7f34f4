import { randomBytes } from 'node:crypto'
import { blobIdOf, createMemoryBlobStore, type BlobStore } from '@tutti/blob-store'
import {
  agentId,
  createManualClock,
  initialAgentState,
  noCrashPoints,
  type AgentId,
  type BlobId,
  type CrashPoint,
} from '@tutti/core'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { createSqliteStore, type SqliteStore } from '@tutti/store'
import { recoverWorkspace } from '@tutti/workspace/log'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { apiConfig } from './api-config.ts'
import { sweepBlobs } from './sweep-blobs.ts'

const never = new AbortController().signal
const day = 24 * 60 * 60_000
let clock: ReturnType<typeof createManualClock>
let store: SqliteStore
let blobs: BlobStore

beforeEach(async () => {
  clock = createManualClock(Date.now())
  store = await createSqliteStore({ path: ':memory:', clock })
  blobs = createMemoryBlobStore()
})
afterEach(() => store.close())

const idOf = (text: string): BlobId => blobIdOf(Buffer.from(text))
const sweep = (over: Partial<BlobStore> = {}, isDryRun = false, crashPoint = noCrashPoints) =>
  sweepBlobs(
    { ...store, clock, config: apiConfig(), crashPoint, blobs: { ...blobs, ...over } },
    isDryRun,
    never,
  )
/** As everybody stores something: announced first. */
const put = async (text: string, how: 'use' | 'add' = 'use') => {
  await store.catalog.blobRefs[how]('ann', [idOf(text)], never)
  return blobs.put(Buffer.from(text), never)
}
const left = async (...texts: string[]) => {
  const there = await Promise.all(texts.map((text) => blobs.has(idOf(text), never)))
  return texts.filter((_, at) => there[at])
}

let made = 0
async function createAgent() {
  const bcId: AgentId = agentId(Date.now(), randomBytes(10))
  const row = {
    bcId,
    owner: 'ann',
    title: 't',
    repository: 'r',
    agentSpec: 'command:x',
    configBlobId: await put(`config ${(made += 1)}`, 'add'),
    createdAt: clock.now(),
    state: initialAgentState,
  }
  await store.catalog.agents.insert(row, never)
  await store.eventLog.create(bcId, 'ann', never)
  let sequence = 0
  const write = async (...events: RunEvent[]) => {
    const producer = { id: 'sandbox', epoch: 1, sequence: (sequence += 1) }
    return (await store.eventLog.append(bcId, producer, events.map(encodeRunEvent), never)).last
  }
  return {
    bcId,
    write,
    /** A capture in which one file has become this. */
    file: async (path: string, text: string, ignored?: true) => {
      const hash = await put(text)
      const size = text.length
      const event = {
        incarnation: 1,
        path,
        action: 'created',
        fileType: 'file',
        mode: '100644',
        hash,
        size,
      } as const
      return write({ type: 'file_change', ...event, ...(ignored && { ignored }) })
    },
    checkpoint: () =>
      write({
        type: 'checkpoint',
        incarnation: 1,
        turnId: 't',
        commit: 'c',
        tree: 't',
        filesChanged: 1,
        manifestDigest: '',
      }),
    expire: () =>
      store.catalog.agents.project(
        bcId,
        { logSequence: 1e6, state: { ...initialAgentState, status: 'EXPIRED', reason: 'expired' } },
        never,
      ),
  }
}

test('on day 31 only what no position of the last 30 days needs is removed', async () => {
  const agent = await createAgent()
  await put('a prompt', 'add')
  await agent.file('a', 'committed on day 0')
  await agent.file('local', 'ignored from day 0 to 20', true)
  await agent.file('rest', 'ignored for ever', true)
  await agent.write({ type: 'session_saved', blobId: await put('session of day 0') })
  await agent.checkpoint()
  await agent.file('b', 'uncommitted on day 0, overwritten on day 0')
  await agent.file('b', 'uncommitted from day 0 on')
  clock.advance(20 * day)
  await agent.file('local', 'ignored from day 20 on', true)
  await agent.write({ type: 'session_saved', blobId: await put('session of day 20') })
  expect((await sweep()).removed).toBe(0)
  clock.advance(11 * day)
  const all = [
    'a prompt',
    'committed on day 0',
    'ignored from day 0 to 20',
    'ignored for ever',
    'session of day 0',
    'uncommitted on day 0, overwritten on day 0',
    'uncommitted from day 0 on',
    'ignored from day 20 on',
    'session of day 20',
  ]
  const gone = ['committed on day 0', 'uncommitted on day 0, overwritten on day 0']
  const bytes = gone.join('').length
  expect(await sweep({}, true)).toEqual({ examined: 10, removed: 2, bytes })
  expect(await left(...all)).toEqual(all)
  expect(await sweep()).toEqual({ examined: 10, removed: 2, bytes })
  expect(await left(...all)).toEqual(all.filter((text) => !gone.includes(text)))
  expect(await store.catalog.blobRefs.has('ann', idOf(gone[0]!), never)).toBe(false)
  // Every position since can be recovered.
  for (let until = 1; until <= (await store.eventLog.head(agent.bcId, never)).last; until += 1) {
    const at = (await store.eventLog.read(agent.bcId, until - 1, { maxBytes: 1 }, never)).records[0]!.at
    if (at < clock.now() - 30 * day) continue
    const { changes } = await recoverWorkspace(store.eventLog, agent.bcId, never, until)
    for (const change of changes)
      if (change.action !== 'deleted' && 'hash' in change.state)
        expect(await blobs.has(change.state.hash, never), `position ${until}`).toBe(true)
  }
  // A second sweep finds nothing.
  expect((await sweep()).removed).toBe(0)
  clock.advance(20 * day)
  await sweep()
  expect(await left('ignored from day 0 to 20', 'session of day 0', 'ignored for ever')).toEqual([
    'ignored for ever',
  ])
})

test('of an EXPIRED agent the uncommitted files go, and its history stays', async () => {
  const agent = await createAgent()
  await put('its prompt', 'add')
  await agent.file('a', 'never committed')
  const blobId = await put('its state')
  const saved = { blobId, offsetKey: 'x', savedAt: clock.now(), status: 'IDLE', version: 1 } as const
  await store.catalog.agents.saveState(agent.bcId, saved, never)
  clock.advance(31 * day)
  await agent.expire()
  await sweep()
  expect(await left('its prompt', 'never committed', 'its state')).toEqual(['its prompt', 'its state'])
})

test('a blob that is used again is young again, and one that nobody ever announced goes with its age', async () => {
  await put('once')
  await put('again')
  await blobs.put(Buffer.from('left by a crash'), never)
  clock.advance(29 * day)
  await put('again')
  clock.advance(2 * day)
  await sweep()
  expect(await left('once', 'again', 'left by a crash')).toEqual(['again'])
  clock.advance(29 * day)
  await sweep()
  expect(await left('again')).toEqual([])
})

describe('while a sweep is under way', () => {
  beforeEach(async () => {
    await put('old')
    clock.advance(31 * day)
  })

  test('a blob that comes into use before its removal begins stays', async () => {
    await sweep({
      async *list(signal) {
        for await (const blob of blobs.list(signal)) {
          yield blob
          await put('old')
        }
      },
    })
    expect(await left('old')).toEqual(['old'])
  })

  test('a put after its removal has begun waits for it, and stores the blob again', async () => {
    const order: string[] = []
    let putting: Promise<unknown> | undefined
    await sweep({
      async remove(id, signal) {
        putting = put('old').then(() => order.push('put'))
        // The use is announced, and waits.
        while (
          await store.catalog.blobRefs.removable([id], clock.now(), never).then((ids) => ids.length > 0)
        );
        await blobs.remove(id, signal)
        order.push('removed')
      },
    })
    // What waits looks again every 100 ms of the clock.
    for (let isOver = false; !isOver; clock.advance(100))
      isOver = await Promise.race([
        putting!.then(() => true),
        new Promise<false>((resolve) => setImmediate(resolve, false)),
      ])
    expect(order).toEqual(['removed', 'put'])
    expect(await left('old')).toEqual(['old'])
    expect((await sweep()).removed).toBe(0)
  })

  test('two sweeps at once remove each blob once', async () => {
    const removed = await Promise.all([sweep(), sweep(), sweep()])
    expect(removed.map((result) => result.removed).toSorted((one, other) => one - other)).toEqual([0, 0, 1])
  })

  test.for([
    ['before', []],
    ['after', ['removed']],
  ] as const)(
    'one that dies right %s a removal is ended by a later one, and not by one that follows at once',
    async ([when, done]) => {
      const passed: string[] = []
      const dies: CrashPoint = async (name, step) => {
        expect(name).toBe('blob.remove')
        if (when === 'after') await step().then(() => passed.push('removed'))
        throw new Error('killed')
      }
      await expect(sweep({}, false, dies)).rejects.toThrow('killed')
      expect(passed).toEqual(done)
      expect(await left('old')).toEqual(when === 'before' ? ['old'] : [])
      const removals: BlobId[] = []
      const remove: BlobStore['remove'] = async (id, signal) => {
        removals.push(id)
        await blobs.remove(id, signal)
      }
      await sweep({ remove })
      expect(removals).toEqual([])
      clock.advance(11 * 60_000)
      await sweep({ remove })
      expect(removals).toEqual([idOf('old')])
      await put('old')
      expect(await left('old')).toEqual(['old'])
    },
  )
})
