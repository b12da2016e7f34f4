import { mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TuttiClient } from '@tutti/client'
import { noCrashPoints, TuttiError } from '@tutti/core'
import { expect, onTestFinished, test, vi } from 'vitest'
import { runSync } from './run-sync.ts'
import { openSyncState } from './sync-state.ts'

/** A folder that was in step up to position 1. */
function knownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-run-sync-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const state = openSyncState(folder, 'bc')
  state.change((write) => write.offset('1'))
  state.close()
  return folder
}

const run = (folder: string, once: boolean, agents: object) =>
  runSync({
    client: () => Promise.resolve({ agents } as unknown as TuttiClient),
    bcId: 'bc',
    folder,
    once,
    allowDeletions: false,
    crashPoint: noCrashPoints,
    note: () => {},
    say: () => {},
    signal: new AbortController().signal,
  })

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
  const running = runSync({
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
  await expect(running).rejects.toMatchObject({ code: 'cancelled' })
})

test('one run in a folder that is known ends when the server is away, as the first one does', async () => {
  const away = () => {
    throw new TuttiError('unavailable', 'away')
  }
  const running = run(knownFolder(), true, { streamAgentEvents: away })
  await expect(running).rejects.toMatchObject({ code: 'unavailable' })
})

test('what was read before is not read again: each connection, of this run and of the next, goes on where the last one was', async () => {
  const folder = knownFolder()
  const asked: (string | undefined)[] = []
  const eventJson = '{"type":"text_delta","text":"talk"}'
  /** Has one more event for each connection. */
  const server = {
    async *streamAgentEvents({ offsetKey }: { offsetKey?: string }) {
      asked.push(offsetKey)
      yield { offsetKey: `${asked.length + 1}`, eventJson }
    },
    readWorkspace(): never {
      throw new Error('the whole workspace is read again')
    },
  }
  // One that stays follows behind what it has caught up with, here until the log is closed.
  expect(await run(folder, false, server)).toBe(0)
  expect(asked).toEqual(['1', '2'])
  expect(await run(folder, true, server)).toBe(0)
  expect(asked).toEqual(['1', '2', '3'])
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
  const running = run(folder, true, { streamAgentEvents })
  await expect(running).rejects.toMatchObject({
    code: 'failed_precondition',
    message: `The folder ${folder} cannot be used: database or disk is full.`,
    detail: { next: 'make room on its disk, then the same command again' },
  })
})
