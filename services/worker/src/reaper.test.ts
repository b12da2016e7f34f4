import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSessions, type HostSession } from '@tutti/activities'
import { agentId, createManualClock, initialAgentState, type AgentId } from '@tutti/core'
import { createSqliteStore, type SqliteStore } from '@tutti/store'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { startReaper, type ReaperDeps } from './reaper.ts'

const never = new AbortController().signal
let store: SqliteStore
beforeEach(async () => {
  store = await createSqliteStore({ path: ':memory:' })
})
afterEach(() => store.close())

async function insertAgent(newest: number): Promise<AgentId> {
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
  return bcId
}

/** What is asked for, and nothing that does anything. */
function deps(changes: Partial<ReaperDeps>): ReaperDeps {
  const cacheDir = mkdtempSync(join(tmpdir(), 'tutti-cache-'))
  onTestFinished(() => rmSync(cacheDir, { recursive: true }))
  return {
    sandboxes: { reap: async () => [] },
    sessions: createSessions(),
    endSession: async () => {},
    catalog: store.catalog,
    mirrors: { sweep: async () => [] },
    blobs: {},
    retentionMs: 1,
    cacheDir,
    bundles: [],
    host: 'h',
    clock: createManualClock(),
    log: { info() {}, warn() {} },
    ...changes,
  }
}

test('REC-18 sandboxes whose agents have newer ones elsewhere are ended, also behind one that cannot be; the newest stay', async () => {
  const sessions = createSessions()
  const ended: string[] = []
  for (const [incarnation, newest] of [
    [7, 8],
    [1, 2],
    [2, 2],
    // The catalog hears of a sandbox when it is ready.
    [3, 2],
  ] as const) {
    const bcId = await insertAgent(newest)
    sessions.add({ bcId, owner: 'local', incarnation } as HostSession)
  }
  const warnings: string[] = []
  const reaper = await startReaper(
    deps({
      sessions,
      endSession: async (session) => {
        if (session.incarnation === 7) throw new Error('it hangs')
        ended.push(`incarnation ${session.incarnation}`)
        sessions.remove(session)
      },
      log: { info() {}, warn: (_fields, message) => void warnings.push(message) },
    }),
  )
  await reaper.stop()
  expect(ended).toEqual(['incarnation 1'])
  expect(sessions.all().map(({ incarnation }) => incarnation)).toEqual([7, 2, 3])
  expect(warnings).toEqual(['a sandbox that may be replaced could not be ended'])
})

test('a chore that fails does not keep the others, and is tried again', async () => {
  const clock = createManualClock()
  let tries = 0
  let swept = 0
  const warnings: unknown[] = []
  const reaper = await startReaper(
    deps({
      clock,
      sandboxes: {
        async reap() {
          tries += 1
          throw new Error('busy')
        },
      },
      mirrors: {
        async sweep() {
          swept += 1
          return []
        },
      },
      log: { info() {}, warn: ({ what }) => void warnings.push(what) },
    }),
  )
  await vi.waitFor(() => expect(swept).toBe(1))
  expect(warnings).toEqual(['sandboxes of dead processes'])
  await vi.waitFor(() => {
    clock.advance(15_000)
    expect(tries).toBeGreaterThan(1)
  })
  await reaper.stop()
})

test('the slot of a verification whose worker was killed is free after a start; one of this process stays', async () => {
  const acquire = (holder: string) =>
    store.catalog.leases.acquire({ host: 'h', kind: 'verify', holder, slots: 1, now: 1 }, never)
  await acquire('en-killed/verify')
  const clock = createManualClock()
  const reaper = await startReaper(deps({ clock }))
  expect(await acquire('en-next/verify')).toEqual({ position: 0 })
  clock.advance(15_000)
  await reaper.stop()
  expect((await store.catalog.leases.list('h', never)).map(({ holder }) => holder)).toEqual([
    'en-next/verify',
  ])
})

test('files that only take room are looked at when it starts, and again every 20 minutes', async () => {
  const minutes = 60_000
  const clock = createManualClock()
  // Time goes by while the reaper sleeps, for 45 minutes.
  const over = Promise.withResolvers<void>()
  const sleep: typeof clock.sleep = (ms, signal) => {
    const asleep = clock.sleep(ms, signal)
    if (clock.now() < 45 * minutes) clock.advance(ms)
    else over.resolve()
    return asleep
  }
  const at: Record<'mirrors' | 'blobs', number[]> = { mirrors: [], blobs: [] }
  const reaper = await startReaper(
    deps({
      clock: { ...clock, sleep },
      mirrors: {
        async sweep() {
          at.mirrors.push(clock.now())
          return []
        },
      },
      blobs: {
        async removeLeftovers() {
          at.blobs.push(clock.now())
        },
      },
    }),
  )
  await over.promise
  await reaper.stop()
  expect(at.mirrors).toEqual([0, 20 * minutes, 40 * minutes])
  expect(at.blobs).toEqual(at.mirrors)
})
