import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { noCrashPoints, TuttiError } from '@tutti/core'
import { expect, onTestFinished, test } from 'vitest'
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
