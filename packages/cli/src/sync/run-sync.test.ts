import { mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TuttiClient } from '@tutti/client'
import { noCrashPoints, TuttiError } from '@tutti/core'
import { expect, onTestFinished, test, vi } from 'vitest'
import { runSync } from './run-sync.ts'
import { openSyncState } from './sync-state.ts'

test('one that stays is not ended by a folder that becomes a file, and sends it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-run-sync-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const state = openSyncState(folder, 'bc')
  state.change((write) => write.offset('00'))
  state.close()
  mkdirSync(join(folder, 'flips'))
  const ending = new AbortController()
  const log: { offsetKey: string; eventJson: string; atMs: bigint }[] = []
  const sent: string[] = []
  let isStaying = false
  const server = {
    blobs: { async store() {} },
    agents: {
      async fileSync({ files }: { files: readonly { path: Uint8Array; mode: string; hash?: Uint8Array }[] }) {
        for (const { path, mode, hash: bytes } of files) {
          const name = Buffer.from(path).toString()
          sent.push(`${name} ${mode}`)
          const offsetKey = String(sent.length).padStart(2, '0')
          const hash = bytes && `sha256_${Buffer.from(bytes).toString('hex')}`
          const event = { type: 'file_sync', commandId: offsetKey, path: name, action: 'created', mode, hash }
          log.push({ offsetKey, eventJson: JSON.stringify(event), atMs: 0n })
        }
        return { offsetKey: log.at(-1)!.offsetKey }
      },
      async *streamAgentEvents(
        { follow, offsetKey = '' }: { follow: boolean; offsetKey?: string },
        { signal }: { signal: AbortSignal },
      ) {
        for (const event of log) if (event.offsetKey > offsetKey) yield event
        while (follow && !signal.aborted) {
          isStaying = true
          await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        }
      },
    },
  } as unknown as TuttiClient
  const run = runSync({
    client: () => Promise.resolve(server),
    bcId: 'bc',
    folder,
    once: false,
    allowDeletions: false,
    crashPoint: noCrashPoints,
    note: () => {},
    say: () => {},
    signal: ending.signal,
  })
  await expect.poll(() => isStaying, { timeout: 20_000 }).toBe(true)
  expect(sent).toEqual(['flips 040000'])
  rmdirSync(join(folder, 'flips'))
  writeFileSync(join(folder, 'flips'), 'a file')
  await expect.poll(() => sent, { timeout: 20_000 }).toEqual(['flips 040000', 'flips 100644'])
  ending.abort()
  await expect(run).rejects.toMatchObject({ code: 'cancelled' })
})

test('one run in a folder that is known ends when the server is away, as the first one does', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-run-sync-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const state = openSyncState(folder, 'bc')
  state.change((write) => write.offset('1'))
  state.close()
  const away = () => {
    throw new TuttiError('unavailable', 'away')
  }
  const run = runSync({
    client: () => Promise.resolve({ agents: { streamAgentEvents: away } } as unknown as TuttiClient),
    bcId: 'bc',
    folder,
    once: true,
    allowDeletions: false,
    crashPoint: noCrashPoints,
    note: () => {},
    say: () => {},
    signal: new AbortController().signal,
  })
  await expect(run).rejects.toMatchObject({ code: 'unavailable' })
})

test.each([
  ['in the run that makes the state', 'PRAGMA locking_mode = EXCLUSIVE'],
  ['when there is something to note', 'BEGIN'],
])('a disk that is full %s is told as that', async (_when, statement) => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-run-sync-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  if (statement === 'BEGIN') {
    const state = openSyncState(folder, 'bc')
    state.change((write) => write.offset('000'))
    state.close()
  }
  // SQLite refuses to grow as it does on such a disk: with the same error, which ends the transaction too.
  const exec = DatabaseSync.prototype.exec
  const spy = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
    if (sql === statement) exec.call(this, 'PRAGMA max_page_count = 1')
    exec.call(this, sql)
  })
  onTestFinished(() => spy.mockRestore())
  const streamAgentEvents = async function* () {
    for (let index = 1; index < 900; index += 1) {
      const file = { path: `file ${index}`, action: 'created', hash: `sha256_${'0'.repeat(64)}` }
      const eventJson = JSON.stringify({ type: 'file_change', incarnation: 1, mode: '100644', ...file })
      yield { offsetKey: String(index).padStart(3, '0'), eventJson, atMs: 0n }
    }
  }
  const run = runSync({
    client: () => Promise.resolve({ agents: { streamAgentEvents } } as unknown as TuttiClient),
    bcId: 'bc',
    folder,
    once: true,
    allowDeletions: false,
    crashPoint: noCrashPoints,
    note: () => {},
    say: () => {},
    signal: new AbortController().signal,
  })
  await expect(run).rejects.toMatchObject({
    code: 'failed_precondition',
    message: `The folder ${folder} cannot be used: database or disk is full.`,
    detail: { next: 'make room on its disk, then the same command again' },
  })
})
