import { createHash } from 'node:crypto'
import { createMemoryBlobStore, type BlobStore } from '@tutti/blob-store'
import { manifestDigest, type FileState } from '@tutti/workspace'
import { afterEach, expect, test } from 'vitest'
import type { HostSession } from './sessions.ts'
import { createWorkspaceTracker } from './workspace-tracker.ts'
import { captureNow, createTestHost, runInside, type TestHost } from './test-host.ts'

const never = new AbortController().signal
const paths = Array.from({ length: 500 }, (_, index) => `file-${index}`)
const bytesOf = (path: string, round: number) =>
  Buffer.from(`${path} in round ${round}\n`.repeat(400).slice(0, 4096))
const hashOf = (content: Buffer) => `sha256_${createHash('sha256').update(content).digest('hex')}` as const
const stateOf = (path: string, round: number): FileState => {
  const content = bytesOf(path, round)
  return {
    path: Buffer.from(path),
    fileType: 'file',
    mode: '100644',
    size: content.length,
    hash: hashOf(content),
  }
}
const base: FileState = { ...stateOf('x', 0), size: 1, hash: hashOf(Buffer.from('x')) }
const digestOf = (round: number) => manifestDigest([base, ...paths.map((path) => stateOf(path, round))])

const hosts: TestHost[] = []
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.remove()
})

/** An agent whose 500 files were each written so many times after its base commit, with no further one: losable as often as one likes. */
async function createHistory(rounds: number) {
  let reads = 0
  let superseded = false
  // What a later round replaces is put where no recovery finds it, and where it costs no disk.
  const aside = createMemoryBlobStore()
  const counted = (real: BlobStore): BlobStore => ({
    put: (bytes, signal) => (superseded ? aside : real).put(bytes, signal),
    putAll: (contents, signal) => (superseded ? aside : real).putAll(contents, signal),
    has: (id, signal) => real.has(id, signal),
    size: (id, signal) => real.size(id, signal),
    list: (signal) => real.list(signal),
    remove: (id, signal) => real.remove(id, signal),
    getAll(ids, signal) {
      reads += ids.length
      return real.getAll(ids, signal)
    },
    get(id, signal, range) {
      reads += 1
      return real.get(id, signal, range)
    },
    stream(id, signal, range) {
      reads += 1
      return real.stream(id, signal, range)
    },
  })
  const host = await createTestHost({ files: { x: 'x' }, blobs: counted })
  hosts.push(host)
  const { events, provision, lose } = host

  /** The agent writes all files, and they are captured. */
  const write = async (session: HostSession, round: number) => {
    const program = `const fs = require("fs"); for (let n = 0; n < ${paths.length}; n++) fs.writeFileSync("file-" + n, ("file-" + n + " in round ${round}\\n").repeat(400).slice(0, 4096))`
    await runInside(session, `node -e '${program}'`)
    await captureNow(session)
  }
  /** What captures of further rounds put into the log. */
  const rewrite = async ({ log, incarnation }: HostSession, from: number, to: number) => {
    superseded = true
    const tracker = createWorkspaceTracker({
      blobs: host.deps.blobs,
      packs: host.deps.blobs,
      crashPoint: host.deps.crashPoint,
      incarnation,
      write: (...events) => log.write(...events),
      checkPack: async () => {},
      signal: never,
      initial: [],
      manifestDigest: digestOf(from - 1),
    })
    for (let round = from; round <= to; round += 1) {
      const sink = tracker.sink()
      for (const path of paths) {
        const base = hashOf(bytesOf(path, round - 1))
        const change = { action: 'modified', state: stateOf(path, round), base } as const
        await sink.change(change, chunk(bytesOf(path, round)))
      }
      await sink.committed({
        manifestDigest: digestOf(round),
        entries: paths.length + 1,
        changes: paths.length,
      })
    }
    await log.flush()
    superseded = false
  }
  const changes = async () => (await events('file_change')).length

  let incarnation = 1
  let session = await provision(incarnation)
  await write(session, 1)
  await rewrite(session, 2, rounds - 1)
  await write(session, rounds)
  expect(await changes()).toBe(rounds * paths.length)
  return {
    /** The loss of the sandbox and its disk, and the time until the next one is ready. */
    async recover() {
      await lose(session)
      reads = 0
      const start = performance.now()
      incarnation += 1
      session = await provision(incarnation)
      const ms = performance.now() - start
      const found = { reads, ms }
      const recovery = {
        incarnation,
        manifestDigest: digestOf(rounds),
        proven: true,
        replayed: paths.length,
      }
      expect((await events('recovery')).at(-1)).toMatchObject(recovery)
      await captureNow(session)
      expect(await changes()).toBe(rounds * paths.length)
      return found
    },
  }
}

const [fewest, most] = [3, 6]
/** The bound of the case. All of it is some 0.3 s, so that half of it is what others add on shared cores: as much again is none of the history's. */
const most50 = (ms: number) => ms * 1.5 + 250

test('REC-13 twenty thousand events after the last commit', { timeout: 300_000 }, async () => {
  const histories = [await createHistory(40), await createHistory(80)] as const
  // By turns, since others share the cores: what they add to the quickest of several is least, and more are taken while it is too much.
  const best = [Infinity, Infinity] as [number, number]
  const isBound = () => best[0] <= 30_000 && best[1] <= most50(best[0])
  for (let round = 1; round <= fewest || (round <= most && !isBound()); round += 1) {
    const [once, twice] = [await histories[0].recover(), await histories[1].recover()]
    expect(once.reads).toBeLessThanOrEqual(510)
    expect(twice.reads).toBe(once.reads)
    best[0] = Math.min(best[0], once.ms)
    best[1] = Math.min(best[1], twice.ms)
  }
  expect(best[0]).toBeLessThanOrEqual(30_000)
  expect(best[1]).toBeLessThanOrEqual(most50(best[0]))
})

async function* chunk(content: Buffer) {
  yield content
}
