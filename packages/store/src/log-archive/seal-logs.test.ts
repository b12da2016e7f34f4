import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFilesystemArchive, createMemoryBlobStore, type Archive } from '@tutti/blob-store'
import { agentId, initialAgentState, systemClock, type AgentId } from '@tutti/core'
import { encodeRunEvent } from '@tutti/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createSqliteStore, type SqliteStore } from '../sqlite/sqlite-store.ts'
import { rebuildLogs } from './rebuild-logs.ts'
import { sealLogs } from './seal-logs.ts'
import { segmentPlace } from './segment-name.ts'

const never = new AbortController().signal
const MiB = 1 << 20
let folder: string
let archive: Archive
let store: SqliteStore
let bcId: AgentId

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti-seal-'))
  archive = createFilesystemArchive({ root: folder })
  store = await createSqliteStore({ path: ':memory:' })
  bcId = agentId(Date.now(), randomBytes(10))
  await store.catalog.repositories.add('ann', 'shop', '/gone/shop', 1, never)
  const row = {
    bcId,
    owner: 'ann',
    title: 'Fix it',
    repository: 'shop',
    agentSpec: 'command:x',
    configBlobId: `sha256_${'0'.repeat(64)}`,
    createdAt: 5,
    state: initialAgentState,
  } as const
  await store.catalog.agents.insert(row, never)
  await store.eventLog.create(bcId, 'ann', never)
})
afterEach(async () => {
  await store.close()
  await rm(folder, { recursive: true })
})

let sequence = 0
/** Events of about 6 KiB each. */
const write = (count: number) => {
  const record = encodeRunEvent({ type: 'text_delta', text: 'x'.repeat(6 << 10) })
  const producer = { id: `p/${(sequence += 1)}`, epoch: 0, sequence: 1 }
  return store.eventLog.append(bcId, producer, Array(count).fill(record), never)
}
/** Of a log that never is still: its last record is always younger than that. */
const seal = () =>
  sealLogs(
    { ...store, archive, clock: systemClock },
    3_600_000,
    (_, error) => {
      throw error
    },
    never,
  )
const segments = () => Array.fromAsync(archive.list(`logs/run_${bcId}.`, never))

test('a log that goes on is sealed once it has more than 2,000 open records, in parts that every store takes, and rebuilt up to there', async () => {
  for (let at = 0; at < 2000; at += 250) await write(250)
  await seal()
  expect(await segments()).toEqual([])

  await write(1)
  await seal()
  const names = await segments()
  expect(names.length).toBeGreaterThan(2)
  const ends = names.map((name) => segmentPlace(name)!)
  expect(ends.map(({ first }) => first)).toEqual([1, ...ends.slice(0, -1).map(({ last }) => last + 1)])
  expect(ends.at(-1)!.last).toBe(2001)
  for (const name of names) {
    const parts = await Array.fromAsync(archive.stream(name, never))
    expect(Buffer.concat(parts).length).toBeLessThan(5 * MiB)
  }

  // Of what follows, nothing is there yet.
  await write(1)
  await seal()
  expect(await segments()).toEqual(names)
  const rebuilt = await createSqliteStore({ path: ':memory:' })
  const blobs = createMemoryBlobStore()
  const deps = { ...rebuilt, archive, blobs, clock: systemClock }
  expect(await Array.fromAsync(rebuildLogs(deps, never))).toEqual([{ log: bcId, there: false, last: 2001 }])
  await rebuilt.close()
})
