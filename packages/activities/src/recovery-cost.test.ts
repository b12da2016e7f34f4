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

let host: TestHost | undefined
afterEach(async () => host?.remove())

test('REC-13 twenty thousand events after the last commit', { timeout: 180_000 }, async () => {
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
  host = await createTestHost({ files: { x: 'x' }, blobs: counted })
  const { events, provision, lose } = host

  /** The agent writes all files, and they are captured. */
  const write = async (session: HostSession, round: number) => {
    const program = `const fs = require("fs"); for (let n = 0; n < ${paths.length}; n++) fs.writeFileSync("file-" + n, ("file-" + n + " in round ${round}\\n").repeat(400).slice(0, 4096))`
    await runInside(session, `node -e '${program}'`)
    await captureNow(session)
    return digestOf(round)
  }
  /** What captures of further rounds put into the log. */
  const rewrite = async ({ log, incarnation }: HostSession, from: number, to: number) => {
    superseded = true
    const tracker = createWorkspaceTracker({
      blobs: host!.deps.blobs,
      packs: host!.deps.blobs,
      crashPoint: host!.deps.crashPoint,
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
  /** The loss of the sandbox and its disk, and the time until the next one is ready. Others share the cores: the best of three counts. */
  const recover = async (session: HostSession, digest: string) => {
    const times: number[] = []
    const before = await changes()
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await lose(session)
      reads = 0
      const start = performance.now()
      incarnation += 1
      session = await provision(incarnation)
      times.push(performance.now() - start)
      expect(reads).toBeLessThanOrEqual(510)
      const recovery = { incarnation, manifestDigest: digest, proven: true, replayed: paths.length }
      expect((await events('recovery')).at(-1)).toMatchObject(recovery)
      await captureNow(session)
      expect(await changes()).toBe(before)
    }
    return { session, reads, ms: Math.min(...times) }
  }

  const first = await provision(incarnation)
  await write(first, 1)
  await rewrite(first, 2, 39)
  const digest = await write(first, 40)
  expect(await changes()).toBe(20_000)
  const once = await recover(first, digest)
  expect(once.ms).toBeLessThanOrEqual(30_000)

  await rewrite(once.session, 41, 79)
  const later = await write(once.session, 80)
  expect(await changes()).toBe(40_000)
  const twice = await recover(once.session, later)
  // What a busy machine adds to seconds is no cost of the history.
  expect(twice.ms).toBeLessThanOrEqual(Math.max(once.ms * 1.5, once.ms + 2000))
  expect(twice.reads).toBe(once.reads)
})

async function* chunk(content: Buffer) {
  yield content
}
