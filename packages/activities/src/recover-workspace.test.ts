import { createHash, randomBytes } from 'node:crypto'
import type { CapturedChange } from '@tutti/agent-server'
import { createMemoryBlobStore } from '@tutti/blob-store'
import { agentId, type BlobId } from '@tutti/core'
import type { TreeChange } from '@tutti/git'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { createSqliteStore, type SqliteStore } from '@tutti/store'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { changePath } from '@tutti/workspace'
import { recoverWorkspace } from './recover-workspace.ts'
import { createWorkspaceTracker, type WorkspaceTracker } from './workspace-tracker.ts'

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

test('what a tracker says is what a recovery folds: newest state of each path since the checkpoint', async () => {
  const blobs = createMemoryBlobStore()
  const tracker = createWorkspaceTracker({ blobs, incarnation: 1, write, signal: never, initial: [] })
  const odd = Buffer.from([0x66, 0xff, 0x6f])
  await tracker.sink.change(file('before', '0'), bytes('0'))
  await write(checkpointAt('c1'))
  tracker.checkpointed()
  await tracker.sink.change(file('a', '1'), bytes('1'))
  await tracker.sink.change(file('a', '22', 'modified'), bytes('22'))
  await tracker.sink.change(file('ä/ü', '3'), bytes('3'))
  await tracker.sink.change(file(odd, '4'), bytes('4'))
  await tracker.sink.change({ action: 'deleted', path: Buffer.from('gone') }, undefined)
  await write(
    { type: 'session_saved', blobId: hashOf('s1') },
    { type: 'session_saved', blobId: hashOf('s2') },
  )

  const recovered = await recoverWorkspace(store.eventLog, bcId, never)
  expect(recovered.commit).toBe('c1')
  expect(recovered.exported).toBe(hashOf('s2'))
  const recoveredAgain = createWorkspaceTracker({
    blobs,
    incarnation: 2,
    write,
    signal: never,
    initial: recovered.changes,
  })
  const checkpoint = await checkpointOf(recoveredAgain)
  expect(checkpoint).toEqual(await checkpointOf(tracker))
  expect(checkpoint).toMatchObject({ a: { size: 2, text: '22' }, gone: 'deleted' })
  expect(Object.keys(checkpoint)).toHaveLength(4)
})

test('an event never names content that is not stored, and a wrong hash is data loss', async () => {
  const blobs = createMemoryBlobStore()
  const events: RunEvent[] = []
  const tracker = createWorkspaceTracker({
    blobs,
    incarnation: 1,
    write: async (event) => {
      if (event.type === 'file_change') expect(await blobs.has(event.hash!, never)).toBe(true)
      events.push(event)
    },
    signal: never,
    initial: [],
  })
  await tracker.sink.change(file('a', '1'), bytes('1'))
  await expect(tracker.sink.change(file('b', '1'), bytes('another'))).rejects.toMatchObject({
    code: 'data_loss',
  })
  await expect(tracker.sink.change(file('c', '1'), undefined)).rejects.toMatchObject({ code: 'internal' })
  expect(events).toHaveLength(1)
  expect(tracker.treeChanges().map(nameOf)).toEqual(['a'])
})

test('an empty folder is in no commit, and stays among the changes after one until it is gone or filled', async () => {
  const tracker = createWorkspaceTracker({
    blobs: createMemoryBlobStore(),
    incarnation: 1,
    write,
    signal: never,
    initial: [],
  })
  const folder = (path: string): CapturedChange => ({
    action: 'created',
    state: { path: Buffer.from(path), fileType: 'dir', mode: '040000' },
  })
  const gone = (path: string): CapturedChange => ({ action: 'deleted', path: Buffer.from(path) })
  const checkpoint = async (commit: string) => {
    const made = await checkpointOf(tracker)
    tracker.checkpointed()
    await write(checkpointAt(commit))
    return made
  }
  for (const path of ['kept', 'filled', 'gone']) await tracker.sink.change(folder(path), undefined)
  // Whatever file was at its path is none any more.
  expect(await checkpoint('c1')).toEqual({ kept: 'deleted', filled: 'deleted', gone: 'deleted' })
  await tracker.sink.change(gone('filled'), undefined)
  await tracker.sink.change(file('filled/a', 'a'), bytes('a'))
  await tracker.sink.change(gone('gone'), undefined)
  await checkpoint('c2')
  const { changes } = await recoverWorkspace(store.eventLog, bcId, never)
  expect(changes).toMatchObject([{ state: { fileType: 'dir' } }])
  expect(Buffer.from(changePath(changes[0]!)).toString()).toBe('kept')
})

test('calls that were under way are known; an empty log recovers to nothing', async () => {
  expect(await recoverWorkspace(store.eventLog, bcId, never)).toEqual({
    commit: undefined,
    changes: [],
    exported: undefined,
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
