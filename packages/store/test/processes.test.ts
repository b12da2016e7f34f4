import { randomBytes, randomInt } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentId, type AgentId } from '@tutti/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createSqliteStore, type Appended, type LogRecord, type SqliteStore } from '../src/index.ts'
import { startStoreProcess, type StoreProcess } from './start-store-process.ts'
import type { StoreCalls } from './store-process.ts'

const never = new AbortController().signal
const stores: SqliteStore[] = []
const processes: StoreProcess[] = []
let folder: string
let log: AgentId

const open = async (wakeDir: string | undefined = folder): Promise<SqliteStore> => {
  const store = await createSqliteStore({
    path: join(folder, 'tutti.db'),
    ...(wakeDir !== '' && { wakeDir }),
  })
  stores.push(store)
  return store
}
const start = async (options?: Parameters<typeof startStoreProcess>[1]): Promise<StoreProcess> => {
  const started = await startStoreProcess(folder, options)
  processes.push(started)
  return started
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti-store-'))
  log = agentId(Date.now(), randomBytes(10))
  await (await open()).eventLog.create(log, 'owner', never)
})
afterEach(async () => {
  await Promise.all(processes.splice(0).map((started) => started.kill()))
  await Promise.all(stores.splice(0).map((store) => store.close()))
  await rm(folder, { recursive: true })
})

/** Reads as a client does, from position to position, until `done` says that it has seen enough. */
async function follow(
  store: SqliteStore,
  done: (records: readonly LogRecord[]) => boolean,
): Promise<LogRecord[]> {
  const records: LogRecord[] = []
  while (!done(records)) {
    const read = await store.eventLog.read(log, records.length, { waitMs: 20_000, maxBytes: 5000 }, never)
    records.push(...read.records)
  }
  return records
}

type Append = StoreCalls['append']

const countTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

test('STR-15 the process that holds the log killed 10 times under 8 writers: nothing acknowledged is lost or doubled', async () => {
  const kills = 10
  const writers = countTo(8)
  let holder = Promise.resolve(await start())
  let acknowledged = 0
  let killAt = randomInt(20, 120)
  let killed = 0
  const killedAll = Promise.withResolvers<void>()
  const wroteOn = Promise.withResolvers<void>()
  let finished = false

  const killNow = () => {
    killed += 1
    const old = holder
    holder = old.then(async (running) => {
      await running.kill()
      return start()
    })
    if (killed === kills) holder.then(() => killedAll.resolve(), killedAll.reject)
  }

  /** Writes on, one append after the other, and retries each with the same number until it is acknowledged. */
  const write = async (writer: number) => {
    const answers: Appended[] = []
    while (!finished) {
      const sequence = answers.length + 1
      const producer = { id: `client/${writer}`, epoch: 0, sequence }
      const records = ['a', 'b'].map((part) => ({ type: 'text', body: `${writer} ${sequence} ${part}` }))
      try {
        answers.push(await (await holder).call('append', log, producer, records))
      } catch (error) {
        if ((error as Error).message !== 'gone') throw error
        continue
      }
      acknowledged += 1
      if (killed === kills && acknowledged >= killAt + 100) wroteOn.resolve()
      if (acknowledged >= killAt && killed < kills) {
        killAt = acknowledged + randomInt(20, 120)
        killNow()
      }
    }
    return answers
  }

  let last = Number.POSITIVE_INFINITY
  const reader = follow(await open(), (records) => records.length >= last)
  const writing = Promise.all(writers.map(write))
  await Promise.race([killedAll.promise, writing])
  await Promise.race([wroteOn.promise, writing])
  finished = true
  const answers = await writing
  const survivor = await open()
  last = (await survivor.eventLog.head(log, never)).last
  const records = await follow(survivor, (all) => all.length >= last)

  expect(killed).toBe(kills)
  expect(records.map(({ sequence }) => sequence)).toEqual(countTo(last))
  for (const writer of writers) {
    const own = records.filter(({ producer }) => producer === `client/${writer}`)
    const stored = answers[writer - 1] ?? []
    expect(own.map(({ body }) => body)).toEqual(
      stored.flatMap((_, index) => [`${writer} ${index + 1} a`, `${writer} ${index + 1} b`]),
    )
    expect(own.map(({ sequence }) => sequence)).toEqual(
      stored.flatMap(({ first, last: end }) => [first, end]),
    )
  }
  // A reader that followed all the time, from another process, has seen the same. It may need one more record to be woken.
  const done = await survivor.eventLog.append(
    log,
    { id: 'end', epoch: 0, sequence: 1 },
    [{ type: 'x', body: '' }],
    never,
  )
  expect((await reader).slice(0, done.first - 1)).toEqual(records)
}, 120_000)

test('two processes and this one append to one log at once; a reader of each sees the same', async () => {
  const here = await open()
  const [a, b] = await Promise.all([start(), start()])
  const inProcess =
    (held: StoreProcess): Append =>
    (...args) =>
      held.call('append', ...args)
  const appenders: Append[] = [
    inProcess(a),
    inProcess(b),
    (id, producer, records) => here.eventLog.append(id, producer, records, never),
  ]
  const count = 100
  const total = appenders.length * count
  const readers = [
    follow(here, (all) => all.length >= total),
    follow(await open(''), (all) => all.length >= total),
  ]
  await Promise.all(
    appenders.map(async (append, index) => {
      for (const sequence of countTo(count)) {
        await append(log, { id: `client/${index}`, epoch: 0, sequence }, [
          { type: 'text', body: `${sequence}` },
        ])
      }
    }),
  )
  const [first, second] = await Promise.all(readers)
  expect(first?.map(({ sequence }) => sequence)).toEqual(countTo(total))
  expect(second).toEqual(first)
  for (const index of appenders.keys()) {
    const own = first?.filter(({ producer }) => producer === `client/${index}`)
    expect(own?.map(({ body }) => Number(body))).toEqual(countTo(count))
  }
})

test('leases never exceed the slots when two processes ask', async () => {
  const workers = await Promise.all([start(), start()])
  let held = 0
  let most = 0
  await Promise.all(
    countTo(8).map(async (index) => {
      const worker = workers[index % 2] as StoreProcess
      const holder = `holder-${index}`
      const request = { host: 'host', kind: 'agent', holder, slots: 2, now: 1 } as const
      while ((await worker.call('acquire', request)).position > 0);
      most = Math.max(most, (held += 1))
      const { catalog } = stores[0] as SqliteStore
      const granted = (await catalog.leases.list('host', never)).filter(
        (lease) => lease.grantedAt !== undefined,
      )
      expect(granted.length).toBeLessThanOrEqual(2)
      held -= 1
      await worker.call('release', 'host', holder)
    }),
  )
  expect(most).toBeLessThanOrEqual(2)
})

test('a crash point before the commit leaves nothing, one after it loses only the answer, and each kills once', async () => {
  const store = await open()
  const append = (holder: StoreProcess, sequence: number) =>
    holder.call('append', log, { id: 'p', epoch: 0, sequence }, [{ type: 'text', body: `${sequence}` }])

  const before = await start({ crashAt: 'log.append:before:2' })
  await append(before, 1)
  await expect(append(before, 2)).rejects.toThrow('gone')
  expect(await before.exited).toBe('SIGKILL')
  expect((await store.eventLog.head(log, never)).last).toBe(1)

  const again = await start({ crashAt: 'log.append:before:2' })
  expect(await append(again, 1)).toEqual({ first: 1, last: 1, repeated: true })
  expect(await append(again, 2)).toEqual({ first: 2, last: 2, repeated: false })

  const after = await start({ crashAt: 'log.append:after' })
  await expect(append(after, 3)).rejects.toThrow('gone')
  expect(await after.exited).toBe('SIGKILL')
  const last = await start({ crashAt: 'log.append:after' })
  expect(await append(last, 3)).toEqual({ first: 3, last: 3, repeated: true })
  expect((await readdir(folder)).filter((name) => name.startsWith('crashed-'))).toHaveLength(2)
})

test('a file that cannot grow is unavailable, and exactly what was acknowledged is stored', async () => {
  const limited = await start({ fileLimit: '2048' })
  const body = 'x'.repeat(50_000)
  const append = (sequence: number) =>
    limited.call('append', log, { id: 'p', epoch: 0, sequence }, [{ type: 'text', body }])
  let stored = 0
  const fill = async () => {
    for (;;) {
      await append(stored + 1)
      stored += 1
    }
  }
  await expect(fill()).rejects.toThrow('unavailable')
  await expect(append(stored + 1)).rejects.toThrow('unavailable')
  expect(stored).toBeGreaterThan(5)
  const store = await open()
  expect((await store.eventLog.head(log, never)).last).toBe(stored)
  await limited.kill()

  const roomy = await start()
  const next = { id: 'p', epoch: 0, sequence: stored + 1 }
  expect((await roomy.call('append', log, next, [{ type: 'text', body }])).first).toBe(stored + 1)
  const records = await follow(await open(), (all) => all.length > stored)
  expect(records.map(({ sequence }) => sequence)).toEqual(countTo(stored + 1))
})

test('the socket of a killed process is removed by the next one that opens the store', async () => {
  const killed = await start()
  const sockets = async () =>
    (await readdir(join(folder, 'wake'))).filter((name) => name.startsWith(`${killed.child.pid}-`))
  expect(await sockets()).toHaveLength(1)
  await killed.kill()
  expect(await sockets()).toHaveLength(1)
  await open()
  await expect.poll(sockets, { timeout: 10_000 }).toEqual([])
})
