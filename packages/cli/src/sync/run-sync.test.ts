import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { noCrashPoints, TuttiError } from '@tutti/core'
import { expect, onTestFinished, test } from 'vitest'
import { runSync } from './run-sync.ts'
import { openSyncState } from './sync-state.ts'

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
