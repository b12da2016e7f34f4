import { createHash, randomBytes } from 'node:crypto'
import type { CapturedChange } from '@tutti/agent-server'
import { createMemoryBlobStore } from '@tutti/blob-store'
import { agentId, noCrashPoints, TuttiError, type BlobId } from '@tutti/core'
import type { TreeChange } from '@tutti/git'
import { decodeRunEvent, encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { createSqliteStore, type SqliteStore } from '@tutti/store'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { changePath } from '@tutti/workspace'
import { fileSync, recoverWorkspace } from '@tutti/workspace/log'
import {
  createWorkspaceTracker,
  type WorkspaceTracker,
  type WorkspaceTrackerDeps,
} from './workspace-tracker.ts'

const never = new AbortController().signal
const bcId = agentId(Date.now(), randomBytes(10))
let store: SqliteStore
let sequence = 0

beforeEach(async () => {
  sequence = 0
  store = await createSqliteStore({ path: ':memory:' })
  await store.eventLog.create(bcId, 'local', never)
})
afterEach(() => store.close())

const write = async (...events: RunEvent[]) => {
  sequence += 1
  await store.eventLog.append(bcId, { id: 'sandbox', epoch: 1, sequence }, events.map(encodeRunEvent), never)
}
const hashOf = (text: string): BlobId => `sha256_${createHash('sha256').update(text).digest('hex')}`
async function* bytes(text: string) {
  yield Buffer.from(text)
}
const file = (
  path: string | Uint8Array,
  text: string,
  action: 'created' | 'modified' = 'created',
): CapturedChange => ({
  action,
  state: {
    path: Buffer.from(path as string),
    fileType: 'file',
    mode: '100644',
    size: text.length,
    hash: hashOf(text),
  },
})
const nameOf = ({ path }: TreeChange) => Buffer.from(path).toString('latin1')

const turnStarted: RunEvent = {
  type: 'turn_started',
  turnId: 't',
  turn: 1,
  incarnation: 1,
  agent: 'command:true',
}
const checkpointAt = (commit: string): RunEvent => ({
  type: 'checkpoint',
  incarnation: 1,
  turnId: 't',
  commit,
  tree: 't1',
  filesChanged: 1,
  manifestDigest: '',
})

/** What a checkpoint of the tracker's changes would write: mode, size and text by path; `deleted` for what goes. */
async function checkpointOf(tracker: WorkspaceTracker) {
  const entries = tracker.treeChanges().map(async (change) => {
    if ('deleted' in change) return [nameOf(change), 'deleted'] as const
    const text = Buffer.concat(await Array.fromAsync(change.content())).toString()
    return [nameOf(change), { mode: change.mode, size: change.size, text }] as const
  })
  return Object.fromEntries(await Promise.all(entries))
}

const digests = { first: '1'.repeat(64), second: '2'.repeat(64) }
const trackerWith = (parts: Partial<WorkspaceTrackerDeps> = {}) =>
  createWorkspaceTracker({
    blobs: parts.blobs ?? createMemoryBlobStore(),
    packs: parts.blobs ?? createMemoryBlobStore(),
    crashPoint: noCrashPoints,
    incarnation: 1,
    write,
    checkPack: async (pack) => void (await Array.fromAsync(pack())),
    signal: never,
    initial: [],
    manifestDigest: digests.first,
    ...parts,
  })
/** One whole capture that finds these. */
async function capture(
  tracker: WorkspaceTracker,
  ...found: [CapturedChange, text?: string][]
): Promise<void> {
  const sink = tracker.sink()
  for (const [change, text] of found) await sink.change(change, text === undefined ? undefined : bytes(text))
  await sink.committed({ manifestDigest: digests.second, entries: 1, changes: found.length })
}
const gone = (path: string): CapturedChange => ({ action: 'deleted', path: Buffer.from(path) })
const stored = async () => {
  const { records } = await store.eventLog.read(bcId, 0, { maxBytes: 1 << 30 }, never)
  return records.map(decodeRunEvent)
}

test('what a tracker says is what a recovery folds: newest state of each path since the checkpoint', async () => {
  const blobs = createMemoryBlobStore()
  const tracker = trackerWith({ blobs })
  const odd = Buffer.from([0x66, 0xff, 0x6f])
  await capture(tracker, [file('before', '0'), '0'])
  await write(checkpointAt('c1'))
  tracker.checkpointed()
  await capture(tracker, [file('a', '1'), '1'])
  await capture(
    tracker,
    [file('a', '22', 'modified'), '22'],
    [file('ä/ü', '3'), '3'],
    [file(odd, '4'), '4'],
    [gone('gone')],
  )
  await write(
    { type: 'session_saved', blobId: hashOf('s1') },
    { type: 'session_saved', blobId: hashOf('s2') },
  )

  const recovered = await recoverWorkspace(store.eventLog, bcId, never)
  expect(recovered.commit).toBe('c1')
  expect(recovered.exported).toBe(hashOf('s2'))
  expect(recovered.manifestDigest).toBe(digests.second)
  const recoveredAgain = trackerWith({ blobs, initial: recovered.changes })
  const checkpoint = await checkpointOf(recoveredAgain)
  expect(checkpoint).toEqual(await checkpointOf(tracker))
  expect(checkpoint).toMatchObject({ a: { size: 2, text: '22' }, gone: 'deleted' })
  expect(Object.keys(checkpoint)).toHaveLength(4)
})

test('a capture is in the log as a whole or not at all, and never names content that is not stored', async () => {
  const blobs = createMemoryBlobStore()
  const tracker = trackerWith({
    blobs,
    write: async (...events) => {
      for (const event of events)
        if (event.type === 'file_change') expect(await blobs.has(event.hash!, never)).toBe(true)
      await write(...events)
    },
  })
  await capture(tracker, [file('a', '1'), '1'])
  await expect(capture(tracker, [file('b', '1'), '1'], [file('c', '1'), 'another'])).rejects.toMatchObject({
    code: 'data_loss',
  })
  await expect(capture(tracker, [file('d', '1'), '1'], [file('e', '1')])).rejects.toMatchObject({
    code: 'internal',
  })
  expect((await stored()).map(({ type }) => type)).toEqual(['file_change', 'workspace_captured'])
  expect(tracker.treeChanges().map(nameOf)).toEqual(['a'])
  expect(tracker.manifestDigest()).toBe(digests.second)
})

test('REC-08 paths are told apart by their bytes, in what is recovered and in what is missing', async () => {
  const odd = Buffer.from([0x66, 0xff])
  const tracker = trackerWith()
  // The last one is named like the way in which the log has the first one's bytes.
  const paths = [odd, Buffer.from([0x66, 0xfe]), Buffer.from('f\ufffd'), Buffer.from(odd.toString('base64'))]
  for (const [index, path] of paths.entries()) await capture(tracker, [file(path, `${index}`), `${index}`])
  const { changes } = await recoverWorkspace(store.eventLog, bcId, never)
  const bytesOf = (all: readonly Uint8Array[]) =>
    all.map((path) => Buffer.from(path).toString('hex')).toSorted()
  expect(bytesOf(changes.map(changePath))).toEqual(bytesOf(paths))

  const sink = tracker.sink()
  for (const path of paths) await sink.skipped(path, 'too_large', 1)
  await sink.committed({ manifestDigest: digests.second, entries: 1, changes: 0 })
  const { missing } = await recoverWorkspace(store.eventLog, bcId, never)
  expect(missing).toEqual([
    { path: 'f\ufffd', pathB64: odd.toString('base64'), reason: 'too_large' },
    { path: 'f\ufffd', pathB64: paths[1]!.toString('base64'), reason: 'too_large' },
    { path: 'f\ufffd', reason: 'too_large' },
    { path: odd.toString('base64'), reason: 'too_large' },
  ])
})

test('an empty folder is in no commit, and stays among the changes after one until it is gone or filled', async () => {
  const tracker = trackerWith()
  const folder = (path: string): [CapturedChange] => [
    { action: 'created', state: { path: Buffer.from(path), fileType: 'dir', mode: '040000' } },
  ]
  const checkpoint = async (commit: string) => {
    const made = await checkpointOf(tracker)
    tracker.checkpointed()
    await write(checkpointAt(commit))
    return made
  }
  await capture(tracker, ...['kept', 'filled', 'gone'].map(folder))
  // Whatever file was at its path is none any more.
  expect(await checkpoint('c1')).toEqual({ kept: 'deleted', filled: 'deleted', gone: 'deleted' })
  await capture(tracker, [gone('filled')], [file('filled/a', 'a'), 'a'], [gone('gone')])
  await checkpoint('c2')
  const { changes } = await recoverWorkspace(store.eventLog, bcId, never)
  expect(changes).toMatchObject([{ state: { fileType: 'dir' } }])
  expect(Buffer.from(changePath(changes[0]!)).toString()).toBe('kept')
})

describe('the repository of an agent', () => {
  const shaOf = (digit: string) => digit.repeat(40)
  async function report(tracker: WorkspaceTracker, commit: string, onto?: string): Promise<boolean> {
    const sink = tracker.sink()
    const commits = [{ sha: commit, message: 'made' }]
    const taken = await sink.gitState(
      { commit, ...(onto && { onto }), commits, size: 1 },
      bytes(`${commit} on ${onto}`),
    )
    await sink.committed({ manifestDigest: digests.first, entries: 0, changes: 0 })
    return taken
  }
  const packOf = (commit: string, onto?: string) => hashOf(`${commit} on ${onto}`)

  test('a recovery needs the packs from the last whole one on, in their order, also when a state comes back', async () => {
    const tracker = trackerWith()
    const [a, b] = [shaOf('a'), shaOf('b')]
    await report(tracker, shaOf('0'))
    await report(tracker, a)
    await report(tracker, b, a)
    await report(tracker, a, b)
    const { git } = await recoverWorkspace(store.eventLog, bcId, never)
    expect(git).toEqual({ commit: a, packs: [packOf(a), packOf(b, a), packOf(a, b)] })
    expect(tracker.hasCommits()).toBe(true)
  })

  test('a pack that git refuses is in no recovery, and is told of', async () => {
    const refused = new TuttiError('failed_precondition', 'git refuses it.')
    const tracker = trackerWith({ checkPack: () => Promise.reject(refused) })
    expect(await report(tracker, shaOf('a'))).toBe(false)
    const recovered = await recoverWorkspace(store.eventLog, bcId, never)
    expect(recovered.git).toBeUndefined()
    expect(recovered.missing).toEqual([{ path: '.git', reason: 'unsafe_object' }])
    expect(await report(trackerWith(), shaOf('b'))).toBe(true)
    expect((await recoverWorkspace(store.eventLog, bcId, never)).missing).toEqual([])
  })
})

test('a workspace that was put back has the repository of then, and its agent is told until a turn has ended', async () => {
  const restored = { requestId: 'r', atOffset: 'o' }
  const [a, b] = ['a'.repeat(40), 'b'.repeat(40)]
  const state = (commit: string, onto?: string): RunEvent => ({
    type: 'git_state',
    incarnation: 1,
    commit,
    pack: hashOf(`${commit} on ${onto}`),
    ...(onto !== undefined && { onto }),
  })
  const back: RunEvent = { type: 'workspace_restored', incarnation: 2, ...restored }
  await write(state(a), state(b, a), back)
  expect(await recoverWorkspace(store.eventLog, bcId, never)).toMatchObject({ git: undefined, restored })
  await write(state(b, a))
  expect((await recoverWorkspace(store.eventLog, bcId, never)).git).toEqual({
    commit: b,
    packs: [hashOf(`${a} on undefined`), hashOf(`${b} on ${a}`)],
  })
  const ended: RunEvent = { type: 'turn_ended', turnId: 't', reason: 'stopped_by_user' }
  // One that was stopped before its prompt was given has told nobody.
  await write(ended)
  expect((await recoverWorkspace(store.eventLog, bcId, never)).restored).toEqual(restored)
  await write(turnStarted, ended)
  expect((await recoverWorkspace(store.eventLog, bcId, never)).restored).toBeUndefined()
})

test('of what the user has changed in a sandbox the agent is told until a turn that began after it has ended', async () => {
  const sync = async (path: string) => {
    await write(fileSync(file(path, path), path), { type: 'ack', commandId: path })
  }
  const untold = async () => {
    const { synced } = await recoverWorkspace(store.eventLog, bcId, never)
    return synced.map((path) => Buffer.from(path).toString())
  }
  const ended: RunEvent = { type: 'turn_ended', turnId: 't', reason: 'completed' }
  await sync('a')
  // Stopped before its prompt was given.
  await write(ended)
  expect(await untold()).toEqual(['a'])
  await write(turnStarted)
  await sync('b')
  // What is lost now takes the agent's knowledge with it.
  expect(await untold()).toEqual(['a', 'b'])
  await write(ended)
  expect(await untold()).toEqual(['b'])
  // The next turn begins before the sandbox has it.
  await write(fileSync(file('c', 'c'), 'c'), turnStarted, { type: 'ack', commandId: 'c' }, ended)
  expect(await untold()).toEqual(['c'])
  await write(turnStarted, turnStarted, ended)
  expect(await untold()).toEqual([])
})

test('a capture that is not in the log to its end proves nothing', async () => {
  const tracker = trackerWith()
  await capture(tracker, [file('a', '1'), '1'])
  await write({ type: 'file_change', incarnation: 1, path: 'b', action: 'deleted' })
  expect((await recoverWorkspace(store.eventLog, bcId, never)).manifestDigest).toBeUndefined()
  await capture(tracker, [gone('b')])
  expect((await recoverWorkspace(store.eventLog, bcId, never)).manifestDigest).toBe(digests.second)
})

test.each([
  [undefined, []],
  [undefined, [['creating', 1]]],
  ['lost', [['ready', 1]]],
  [
    'released',
    [
      ['ready', 1],
      ['destroyed', 1],
    ],
  ],
  [
    'lost',
    [
      ['ready', 1],
      ['lost', 1],
      ['creating', 2],
      ['destroyed', 2],
    ],
  ],
  [
    'lost',
    [
      ['ready', 1],
      ['destroyed', 1],
      ['ready', 2],
    ],
  ],
] as const)('the sandbox before was %s after %j', async (before, states) => {
  for (const [state, incarnation] of states) await write({ type: 'sandbox', incarnation, state })
  expect((await recoverWorkspace(store.eventLog, bcId, never)).before).toBe(before)
})

test('what could not be captured is missing, until it is captured or is another sandbox’s', async () => {
  const skipped = (path: string): RunEvent => ({
    type: 'file_skipped',
    incarnation: 1,
    path,
    reason: 'too_large',
  })
  const missing = async () =>
    (await recoverWorkspace(store.eventLog, bcId, never)).missing.map(({ path }) => path)
  await write(skipped('a'), skipped('b'))
  expect(await missing()).toEqual(['a', 'b'])
  await capture(trackerWith(), [file('a', '1'), '1'])
  expect(await missing()).toEqual(['b'])
  await write({ type: 'sandbox', incarnation: 2, state: 'ready' })
  expect(await missing()).toEqual([])
})

test('a workspace in which nothing was captured has the digest that it began with', async () => {
  const digest = async () => (await recoverWorkspace(store.eventLog, bcId, never)).manifestDigest
  await write({ type: 'sandbox', incarnation: 1, state: 'ready', manifestDigest: 'b'.repeat(64) })
  expect(await digest()).toBe('b'.repeat(64))
  await capture(trackerWith(), [file('a', '1'), '1'])
  const captured = await digest()
  expect(captured).not.toBe('b'.repeat(64))
  // One that could not be restored as a whole says nothing of it.
  await write({ type: 'sandbox', incarnation: 2, state: 'ready' })
  expect(await digest()).toBe(captured)
})

test('calls that were under way are known; an empty log recovers to nothing', async () => {
  expect(await recoverWorkspace(store.eventLog, bcId, never)).toEqual({
    commit: undefined,
    checkpoints: [],
    changes: [],
    pending: [],
    synced: [],
    manifestDigest: undefined,
    capturedAt: undefined,
    git: undefined,
    gitEvent: undefined,
    missing: [],
    before: undefined,
    exported: undefined,
    restored: undefined,
    restoring: undefined,
    openCalls: [],
  })
  await write(
    { type: 'tool_call_started', callId: 'a', toolName: 'shell', args: {} },
    { type: 'tool_call_started', callId: 'b', toolName: 'read', args: {} },
    { type: 'tool_call_completed', callId: 'a', toolName: 'shell', outcome: 'ok' },
  )
  expect((await recoverWorkspace(store.eventLog, bcId, never)).openCalls).toEqual([
    { callId: 'b', toolName: 'read' },
  ])
})

test('a log of many pages is read to its end', async () => {
  const long = 'p'.repeat(3000)
  for (let batch = 0; batch < 4; batch += 1) {
    const events = Array.from({ length: 200 }, (_, index): RunEvent => ({
      type: 'file_change',
      incarnation: 1,
      path: `${long}${batch * 200 + index}`,
      action: 'created',
      hash: hashOf('x'),
    }))
    await write(...events)
  }
  expect((await recoverWorkspace(store.eventLog, bcId, never)).changes).toHaveLength(800)
})
