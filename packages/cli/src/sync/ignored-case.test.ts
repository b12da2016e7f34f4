import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import type { BlobId } from '@tutti/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createLocalTree } from './local-tree.ts'
import { createLocalWriter } from './local-writer.ts'
import type { SyncNote } from './sync-note.ts'
import { openSyncState, type SyncState } from './sync-state.ts'
import { createTestSync } from './test-sync.ts'

let folder: string
let state: SyncState
let notes: SyncNote[]
let sent: Record<string, string>
let restore: () => void
beforeEach(() => {
  folder = fs.mkdtempSync(join(tmpdir(), 'tutti-ignored-case-'))
  restore = ignoreCase(folder)
  state = openSyncState(folder, 'bc')
  state.change((write) => write.offset('1'))
  notes = []
  sent = {}
})
afterEach(() => {
  state.close()
  restore()
  fs.rmSync(folder, { recursive: true, force: true })
})

/** No disk here ignores case: what the sync calls finds, below this folder, a name under each of its spellings. */
function ignoreCase(root: string): () => void {
  const real = { ...fs }
  const asSpelled = (path: unknown): unknown => {
    const text = Buffer.isBuffer(path) ? path.toString('latin1') : path
    if (typeof text !== 'string' || !text.startsWith(root + sep)) return path
    let found = root
    for (const part of text.slice(root.length + 1).split('/')) {
      const names =
        real.existsSync(found) && real.lstatSync(found).isDirectory() ? real.readdirSync(found) : []
      const isSame = (name: string) => name.toLowerCase() === part.toLowerCase()
      found = join(found, names.includes(part) ? part : (names.find(isSame) ?? part))
    }
    return Buffer.from(found, 'latin1')
  }
  const patched = [
    'lstatSync',
    'mkdirSync',
    'openSync',
    'readFileSync',
    'readdirSync',
    'readlinkSync',
    'rmdirSync',
    'unlinkSync',
    'writeFileSync',
  ] as const
  for (const name of patched) {
    const call = real[name] as (...args: unknown[]) => unknown
    Object.assign(fs, { [name]: (path: unknown, ...rest: unknown[]) => call(asSpelled(path), ...rest) })
  }
  Object.assign(fs, {
    renameSync: (from: fs.PathLike, to: fs.PathLike) => real.renameSync(from, asSpelled(to) as Buffer),
  })
  syncBuiltinESMExports()
  return () => {
    for (const name of [...patched, 'renameSync'] as const) Object.assign(fs, { [name]: real[name] })
    syncBuiltinESMExports()
  }
}

const hash = (content: string): BlobId => `sha256_${createHash('sha256').update(content).digest('hex')}`
const contents = ['upper', 'lower', 'mine']

const server = {
  blobs: {
    async *read(wanted: string) {
      yield Buffer.from(contents.find((content) => hash(content) === wanted)!)
    },
    async store() {},
  },
  agents: {
    async fileSync({ files }: { files: readonly { path: Uint8Array; mode: string; hash?: Uint8Array }[] }) {
      for (const { path, hash: bytes } of files) {
        const id = bytes && `sha256_${Buffer.from(bytes).toString('hex')}`
        const content = contents.find((known) => hash(known) === id)
        sent[Buffer.from(path).toString()] = content ?? 'deleted'
        state.change((write) =>
          write.remote(
            Buffer.from(path).toString(),
            content === undefined ? undefined : { mode: '100644', hash: hash(content) },
          ),
        )
      }
      return { offsetKey: '2' }
    },
  },
} as unknown as TuttiClient

function agentHas(name: string, content: string): void {
  state.change((write) => write.remote(name, { mode: '100644', hash: hash(content) }))
}

/** One run, of which the log knows by the next. */
async function run(): Promise<number> {
  const sync = createTestSync(folder, {
    client: () => Promise.resolve(server),
    state,
    note: (note) => void notes.push(note),
    ignoresCase: true,
  })
  await sync.begin()
  await sync.settle('all')
  await sync.settle('told')
  return sync.report(true)
}

test("of two of the agent's files that the disk takes for one, the second stays out and stays as it is, in each run", async () => {
  agentHas('File', 'upper')
  agentHas('file', 'lower')
  agentHas('Lib/a', 'upper')
  agentHas('lib/b', 'lower')
  for (const _ of [1, 2, 3]) expect(await run()).toBe(2)
  expect(sent).toEqual({})
  expect(fs.readdirSync(folder).sort()).toEqual(['.tutti', 'File', 'Lib'])
  expect(fs.readdirSync(join(folder, 'Lib'))).toEqual(['a'])
  expect(fs.readFileSync(join(folder, 'File'), 'utf8')).toBe('upper')
  expect(notes.filter(({ kind }) => kind === 'left')).toMatchObject(
    [1, 2, 3].flatMap(() => [
      { key: 'file', detail: expect.stringMatching(/^its name is that of File on a disk/) },
      { key: 'lib/b', detail: expect.stringMatching(/^its name is that of Lib on a disk/) },
    ]),
  )
})

test("nothing of the agent's goes into a folder of the user's that differs in case, ignored as it may be", async () => {
  fs.writeFileSync(join(folder, '.gitignore'), 'Out/\n')
  fs.mkdirSync(join(folder, 'Out'))
  fs.writeFileSync(join(folder, 'Out/mine'), 'mine')
  contents.push('Out/\n')
  agentHas('out/a', 'upper')
  agentHas('out/mine', 'lower')
  for (const _ of [1, 2]) expect(await run()).toBe(2)
  expect(sent).toEqual({ '.gitignore': 'Out/\n' })
  expect(fs.readFileSync(join(folder, 'Out/mine'), 'utf8')).toBe('mine')
  expect(fs.readdirSync(join(folder, 'Out'))).toEqual(['mine'])
})

test('a file that the user has renamed in case only goes to the agent under its new name', async () => {
  agentHas('File', 'upper')
  expect(await run()).toBe(0)
  fs.unlinkSync(join(folder, 'File'))
  fs.writeFileSync(join(folder, 'file'), 'upper')
  for (const _ of [1, 2]) expect(await run()).toBe(0)
  expect(sent).toEqual({ File: 'deleted', file: 'upper' })
  expect(fs.readdirSync(folder).sort()).toEqual(['.tutti', 'file'])
})

test('what was seen under one spelling is not removed under another', async () => {
  fs.writeFileSync(join(folder, 'file'), 'mine')
  const tree = createLocalTree(folder, true)
  const seen = await tree.look('File')
  expect(seen).toEqual({ state: undefined, stat: undefined, namesake: 'file' })
  await createLocalWriter(tree, state.temporaries).remove('File', seen)
  expect(fs.readFileSync(join(folder, 'file'), 'utf8')).toBe('mine')
})
