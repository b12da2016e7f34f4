import { randomBytes } from 'node:crypto'
import { blobIdOf } from '@tutti/blob-store'
import { initialAgentState, type AgentId, type BlobId } from '@tutti/core'
import { AgentService } from '@tutti/proto'
import { decodeRunEvent, type RunEvent } from '@tutti/protocol'
import { hostilePaths } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

const never = new AbortController().signal
let api: DemoApi
let bcId: string
beforeAll(async () => {
  api = await startDemoApi()
  bcId = (
    await api.client(AgentService).createAgent({
      prompt: 'Do it',
      repository: { location: { case: 'registered', value: 'demo' } },
    })
  ).agent!.bcId
})
afterAll(() => api.close())

const bytes = (text: string) => new TextEncoder().encode(text)
const raw = (id: BlobId) => Uint8Array.from(Buffer.from(id.slice(7), 'hex'))
const agents = () => api.client(AgentService)
const stored = async (text: string): Promise<BlobId> => {
  const id = await api.blobs.put(bytes(text), never)
  await api.store.catalog.blobRefs.add('local', [id], never)
  return id
}
async function logged(): Promise<RunEvent[]> {
  const { records } = await api.store.eventLog.read(bcId as AgentId, 0, { types: ['file_sync'] }, never)
  return records.map(decodeRunEvent)
}

describe('file_sync', () => {
  test('goes into the log as one, with what is in the store, while there is no sandbox', async () => {
    const mine = await stored('mine')
    const target = await stored('mine.txt')
    const files = [
      { path: bytes('mine.txt'), mode: '100755', hash: raw(mine), baseHash: raw(blobIdOf('older')) },
      { path: bytes('link'), mode: '120000', hash: raw(target) },
      { path: bytes('empty'), mode: '040000' },
      { path: Uint8Array.from([0xff, 0x61]) },
    ]
    const { offsetKey } = await agents().fileSync({ bcId, files, idempotencyKey: 'k1' })
    const events = await logged()
    expect(events).toMatchObject([
      {
        path: 'mine.txt',
        action: 'modified',
        fileType: 'file',
        mode: '100755',
        hash: mine,
        size: 4,
        base: blobIdOf('older'),
      },
      { path: 'link', action: 'created', fileType: 'symlink', hash: target, size: 8 },
      { path: 'empty', action: 'created', fileType: 'dir', mode: '040000' },
      { pathB64: '/2E=', action: 'deleted' },
    ])
    expect(new Set(events.map((event) => event.type === 'file_sync' && event.commandId)).size).toBe(4)
    // An answer that was lost: the same again.
    expect(await agents().fileSync({ bcId, files, idempotencyKey: 'k1' })).toMatchObject({ offsetKey })
    expect(await logged()).toHaveLength(4)
    await expect(
      agents().fileSync({ bcId, files: files.slice(1), idempotencyKey: 'k1' }),
    ).rejects.toMatchObject({ rawMessage: expect.stringContaining('key') as string })
  })

  test('names no content that is not there, is not the caller’s, or is not what its type needs', async () => {
    const before = (await logged()).length
    const theirs = await api.blobs.put(randomBytes(10), never)
    const gone = blobIdOf('gone')
    await api.store.catalog.blobRefs.add('local', [gone], never)
    const mine = await stored('mine')
    const path = bytes('a')
    const refused = [
      { path, mode: '100644', hash: raw(theirs) },
      { path, mode: '100644', hash: raw(gone) },
      { path, mode: '100644' },
      { path, hash: raw(mine) },
      { path, mode: '120000', hash: raw(await stored('')) },
      { path, mode: '100600', hash: raw(mine) },
      { path, mode: '100644', hash: raw(mine).slice(1) },
    ]
    const codes: string[] = []
    for (const file of refused)
      await agents()
        .fileSync({ bcId, files: [{ path, mode: '' }, file] })
        .catch((error: { code: number }) => codes.push(String(error.code)))
    expect(codes).toEqual(['5', '5', '3', '3', '3', '3', '3'])
    expect(await logged()).toHaveLength(before)
  })

  test.each(hostilePaths)(
    'SEC-01 a client that names the path %j is refused as a whole, written and deleted',
    async (path) => {
      const before = (await logged()).length
      const mine = raw(await stored('mine'))
      for (const file of [{ path: bytes(path), mode: '100644', hash: mine }, { path: bytes(path) }])
        await expect(agents().fileSync({ bcId, files: [{ path: bytes('a') }, file] })).rejects.toMatchObject({
          code: 3,
        })
      expect(await logged()).toHaveLength(before)
    },
  )

  test('is refused where nothing can come of it, with the way out', async () => {
    const archived = { ...initialAgentState, status: 'ARCHIVED' as const }
    await api.store.catalog.agents.project(bcId as AgentId, { logSequence: 1000, state: archived }, never)
    await expect(agents().fileSync({ bcId, files: [{ path: bytes('a') }] })).rejects.toMatchObject({
      rawMessage: expect.stringContaining('resume it first') as string,
    })
  })
})
