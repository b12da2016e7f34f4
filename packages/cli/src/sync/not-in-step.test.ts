import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BlobId } from '@tutti/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { FolderSync } from './folder-sync.ts'
import type { SyncNote } from './sync-note.ts'
import { openSyncState, type SyncState } from './sync-state.ts'
import { createTestSync } from './test-sync.ts'

let folder: string
let state: SyncState
let notes: SyncNote[]
let sync: FolderSync
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-not-in-step-'))
  state = openSyncState(folder, 'bc')
  notes = []
  sync = createTestSync(folder, {
    // Nothing here goes either way.
    client: () => Promise.reject(new Error('no server')),
    state,
    note: (note) => void notes.push(note),
  })
})
afterEach(() => {
  state.close()
  rmSync(folder, { recursive: true, force: true })
})

const hash = (content: string): BlobId => `sha256_${createHash('sha256').update(content).digest('hex')}`
const at = (name: string) => join(folder, name)

/** Both have it; the agent may have gone on since. */
function agreedOn(name: string, content: string, remote = content): void {
  writeFileSync(at(name), content)
  state.change((write) => {
    write.remote(name, { mode: '100644', hash: hash(remote) })
    write.base(name, { mode: '100644', hash: hash(content) })
  })
}

test('a folder that cannot be read is told of: what the agent has changed in it does not come', async () => {
  mkdirSync(at('shut'))
  agreedOn('shut/file', 'before', 'after')
  chmodSync(folder, 0o755)
  chmodSync(at('shut'), 0)
  const user = process.geteuid!()
  // Root may read all.
  if (user === 0) process.seteuid!('nobody')
  await sync.settle('all').finally(() => user === 0 && process.seteuid!(user))
  expect(sync.report(true)).toBe(1)
  expect(notes).toMatchObject([
    { kind: 'left', key: 'shut', detail: expect.stringMatching(/cannot be read/) },
  ])
})

test('what is no file is told of until it is gone, or a rule ignores it', async () => {
  agreedOn('.gitignore', '*.ignored\n')
  execFileSync('sh', ['-c', 'mkfifo pipe pipe.ignored'], { cwd: folder })
  await sync.settle('all')
  expect(sync.report(true)).toBe(1)
  expect(notes).toMatchObject([{ kind: 'left', key: 'pipe', detail: expect.stringMatching(/to .gitignore/) }])
  unlinkSync(at('pipe'))
  await sync.settle('all')
  expect(sync.report(true)).toBe(0)
})
