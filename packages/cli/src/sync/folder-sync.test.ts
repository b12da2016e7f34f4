import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { TuttiError, type BlobId } from '@tutti/core'
import { blobIdToBytes } from '@tutti/protocol/wire'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FolderSync } from './folder-sync.ts'
import type { PathState } from './path-state.ts'
import type { SyncNote } from './sync-note.ts'
import { openSyncState, type SyncState } from './sync-state.ts'
import { createTestSync } from './test-sync.ts'

const hash = (content: string): BlobId => `sha256_${createHash('sha256').update(content).digest('hex')}`

describe('a content that the stores have lost', () => {
  let folder: string
  let state: SyncState
  let notes: SyncNote[]
  let readings: number
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tutti-lost-content-'))
    state = openSyncState(folder, 'bc')
    notes = []
    readings = 0
  })
  afterEach(() => {
    state.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** What comes with a whole reading, and each blob that there still is. */
  const newSync = (workspace: Readonly<Record<string, string>>, blobs: readonly string[]) => {
    const server = {
      blobs: {
        async *read(wanted: string) {
          const content = blobs.find((known) => hash(known) === wanted)
          if (content === undefined) throw new TuttiError('not_found', 'There is no blob.')
          yield Buffer.from(content)
        },
      },
      agents: {
        async *readWorkspace({ allowLost }: { allowLost: boolean }) {
          readings += 1
          for (const [name, content] of Object.entries(workspace)) {
            const isLost = content === 'lost'
            if (isLost && !allowLost) throw new TuttiError('data_loss', 'lost')
            const lostHash = isLost ? blobIdToBytes(hash(content)) : new Uint8Array()
            yield {
              part: { case: 'entry', value: { path: Buffer.from(name), mode: '100644', lostHash } },
            }
            if (!isLost) yield { part: { case: 'content', value: Buffer.from(content) } }
          }
          yield { part: { case: 'summary', value: { offsetKey: '2', pending: [], recordedDigest: '' } } }
        },
      },
    } as unknown as TuttiClient
    return createTestSync(folder, {
      client: () => Promise.resolve(server),
      state,
      note: (note) => void notes.push(note),
    })
  }
  async function run(sync: FolderSync): Promise<number> {
    await sync.begin()
    while ((await sync.settle('all')) !== 'settled') await sync.begin()
    return sync.report(true)
  }
  const left = {
    kind: 'left',
    key: 'f',
    detail: expect.stringMatching(`content .${hash('lost')}. cannot be had now; .tutti agent recover bc `),
  }

  test('is told, all else comes, and it comes when it is there again', async () => {
    const workspace = { f: 'lost', g: 'g' }
    expect(await run(newSync(workspace, ['g']))).toBe(1)
    expect(notes).toEqual([{ kind: 'received', key: 'g' }, left])
    expect(readings).toBe(1)
    expect(await run(newSync(workspace, ['g']))).toBe(1)
    expect(await run(newSync(workspace, ['g', 'lost']))).toBe(0)
    expect(readFileSync(join(folder, 'f'), 'utf8')).toBe('lost')
  })

  test('of an event leaves the file as it was, and the next event comes', async () => {
    await run(newSync({ f: 'f', g: 'g' }, []))
    state.change((write) => {
      write.remote('f', { mode: '100644', hash: hash('lost') })
      write.remote('g', { mode: '100644', hash: hash('g2') })
    })
    expect(await run(newSync({ f: 'lost', g: 'g2' }, ['g2']))).toBe(1)
    expect(notes.slice(2)).toEqual([{ kind: 'received', key: 'g' }, left])
    expect(readFileSync(join(folder, 'f'), 'utf8')).toBe('f')
    expect(readFileSync(join(folder, 'g'), 'utf8')).toBe('g2')
  })
})

/** By a kill: `test/faults/sync-crash-points.test.ts`. Here the server is a stand-in that goes away, everything else is real. */
describe('a sync that reads the whole workspace', () => {
  let folder: string
  let state: SyncState
  let workspace: Map<string, string>
  let lost: ReadonlySet<string>
  let missing: readonly string[]
  let isAway: (content: string) => boolean

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tutti-folder-sync-'))
    state = openSyncState(folder, 'bc')
    workspace = new Map()
    lost = new Set()
    missing = []
    isAway = () => false
  })
  afterEach(() => {
    state.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const at = (name: string) => join(folder, name)
  const read = (name: string) => (existsSync(at(name)) ? readFileSync(at(name), 'utf8') : undefined)

  /** Has no way to be sent anything: what would be sent fails the test. */
  const server = {
    blobs: {
      async *read(wanted: string) {
        const content = ['b0', 'v1', 'v2'].find((known) => hash(known) === wanted)
        if (content === undefined) throw new TuttiError('not_found', 'gone')
        if (isAway(content)) throw new TuttiError('unavailable', 'away')
        yield Buffer.from(content)
      },
    },
    agents: {
      async *readWorkspace() {
        for (const [name, content] of workspace) {
          const lostHash = lost.has(name) ? blobIdToBytes(hash(content)) : new Uint8Array()
          yield { part: { case: 'entry', value: { path: Buffer.from(name), mode: '100644', lostHash } } }
          if (lost.has(name)) continue
          if (isAway(content)) throw new TuttiError('unavailable', 'away')
          yield { part: { case: 'content', value: Buffer.from(content) } }
        }
        for (const name of missing) yield { part: { case: 'missing', value: { path: Buffer.from(name) } } }
        yield { part: { case: 'summary', value: { offsetKey: '1', pending: [], recordedDigest: '' } } }
      },
    },
  } as unknown as TuttiClient

  const newSync = (note: (note: SyncNote) => void = () => {}) =>
    createTestSync(folder, { client: () => Promise.resolve(server), state, note })
  /** As an event of the log does. */
  function agentHas(name: string, content: string | undefined): void {
    const now: PathState = content === undefined ? undefined : { mode: '100644', hash: hash(content) }
    state.change((write) => write.remote(name, now))
  }
  async function inStep(content: string): Promise<void> {
    workspace.set('f', content)
    const sync = newSync()
    await sync.begin()
    await sync.settle('all')
    expect(read('f')).toBe(content)
  }
  /** The next run, which has nothing to send. */
  async function goesOn(): Promise<void> {
    const sync = newSync()
    await sync.begin()
    await sync.settle('all')
    expect(read('f')).toBe('v2')
  }

  test('what was placed when it was broken off by a server that is away is not taken for the work of the user', async () => {
    await inStep('b0')
    agentHas('f', 'v1')
    agentHas('g', 'v2')
    isAway = (content) => content === 'v2'
    await expect(newSync().settle('all')).rejects.toThrow('away')
    expect(read('f')).toBe('v1')
    isAway = () => false
    agentHas('f', 'v2')
    // Nothing is begun anew within one run.
    await newSync().settle('all')
    expect([read('f'), read('g')]).toEqual(['v2', 'v2'])
  })

  test('nor by a server that goes away in the first reading', async () => {
    workspace.set('f', 'v1').set('g', 'v2')
    isAway = (content) => content === 'v2'
    await expect(newSync().begin()).rejects.toThrow('away')
    isAway = () => false
    workspace.set('f', 'v2')
    await goesOn()
  })

  test('removes what the agent has deleted, and nothing that is only kept no more or that rules ignore', async () => {
    const names = ['.gitignore', 'deleted', 'expired', 'left/out', 'settings.local', 'stays']
    for (const name of names) workspace.set(name, name === '.gitignore' ? '*.local' : 'v1')
    const first = newSync()
    await first.begin()
    await first.settle('all')
    expect(names.map(read)).toEqual(['*.local', 'v1', 'v1', 'v1', 'v1', 'v1'])

    for (const name of ['deleted', 'left/out', 'settings.local']) workspace.delete(name)
    lost = new Set(['expired'])
    missing = ['left/']
    // Its content is in no store: the workspace is read as a whole.
    agentHas('stays', 'nobody has it')
    const notes: SyncNote[] = []
    const next = newSync((note) => notes.push(note))
    await next.settle('all')
    await next.begin()
    await next.settle('all')
    expect(names.map(read)).toEqual(['*.local', undefined, 'v1', 'v1', 'v1', 'v1'])
    expect(next.report(true)).toBe(0)
    expect(notes).toEqual([{ kind: 'removed', key: 'deleted' }])
  })
})
