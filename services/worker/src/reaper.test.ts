import { randomBytes } from 'node:crypto'
import type { HostSession } from '@tutti/activities'
import { createSessions } from '@tutti/activities'
import { agentId, createManualClock, initialAgentState } from '@tutti/core'
import { createSqliteStore } from '@tutti/store'
import { expect, onTestFinished, test } from 'vitest'
import { startReaper } from './reaper.ts'

const never = new AbortController().signal

test('REC-18 a sandbox whose agent has a newer one elsewhere is ended; the newest one stays', async () => {
  const store = await createSqliteStore({ path: ':memory:' })
  onTestFinished(() => store.close())
  const sessions = createSessions()
  const ended: string[] = []
  for (const [incarnation, newest] of [
    [1, 2],
    [2, 2],
    // The catalog hears of a sandbox when it is ready.
    [3, 2],
  ] as const) {
    const bcId = agentId(Date.now(), randomBytes(10))
    await store.catalog.agents.insert(
      {
        bcId,
        owner: 'local',
        title: 't',
        repository: 'r',
        agentSpec: 'embedded',
        configBlobId: `sha256_${'0'.repeat(64)}`,
        createdAt: 1,
        state: initialAgentState,
      },
      never,
    )
    await store.catalog.agents.project(bcId, { logSequence: 1, incarnation: newest }, never)
    sessions.add({ bcId, owner: 'local', incarnation } as HostSession)
  }
  const reaper = await startReaper({
    sandboxes: { reap: async () => [] } as unknown as Parameters<typeof startReaper>[0]['sandboxes'],
    sessions,
    endSession: async (session) => {
      ended.push(`incarnation ${session.incarnation}`)
      sessions.remove(session)
    },
    catalog: store.catalog,
    host: 'h',
    clock: createManualClock(),
    log: { info() {}, warn() {} },
  })
  await reaper.stop()
  expect(ended).toEqual(['incarnation 1'])
  expect(sessions.all().map(({ incarnation }) => incarnation)).toEqual([2, 3])
})
