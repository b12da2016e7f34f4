import { createFaultySandboxes } from '@tutti/sandbox/faulty'
import { afterEach, describe, expect, test } from 'vitest'
import { createTestHost, runInside, type TestHost } from './test-host.ts'
import { moveAtOf } from './end-of-life.ts'

let host: TestHost
afterEach(async () => host?.remove())

/** A file every tenth of a second, 60 of them, from where it was. */
const agentSpec =
  "command:sh -c 'i=$(ls n* 2>/dev/null | wc -l); while [ $i -lt 60 ]; do i=$((i+1)); echo $i > n$i; sleep 0.1; done'"
const lifeMs = 4000

describe('SBX-05 the life of a sandbox ends in the middle of a turn', { timeout: 60_000 }, () => {
  const start = (faults: { lifeMs: number; unannounced?: boolean }) =>
    createTestHost({
      files: { x: 'x' },
      agentSpec,
      captureIntervalMs: 300,
      endMarginMs: 1500,
      sandboxes: (real) => createFaultySandboxes(real, faults),
    })
  const countFiles = async () => {
    const paths = (await host.events('file_change')).map(({ path }) => path)
    return new Set(paths).size
  }

  test('announced: the work moves before it, with a checkpoint and the reason, and nothing is lost', async () => {
    const faults: { lifeMs?: number } = { lifeMs }
    host = await start(faults as { lifeMs: number })
    const first = await host.provision(1)
    const { expiresAt } = first.sandbox
    await expect(host.runTurn(first, false)).rejects.toMatchObject({
      type: 'sandbox_lost',
      details: ['planned', 'expires'],
    })
    expect(Date.now()).toBeLessThan(expiresAt!)
    await host.release(first)
    expect(await host.events('sandbox')).toMatchObject([
      { state: 'creating' },
      { state: 'hydrating' },
      { state: 'ready', expiresAt },
      { state: 'destroyed', reason: 'expires' },
    ])
    const written = await countFiles()
    expect(written).toBeGreaterThan(5)
    expect((await host.events('checkpoint')).at(-1)).toMatchObject({ filesChanged: written })

    delete faults.lifeMs
    const second = await host.provision(2)
    expect((await host.events('recovery')).at(-1)).toMatchObject({
      reason: 'expires',
      proven: true,
      replayed: 0,
    })
    expect(await host.runTurn(second, true)).toMatchObject({ reason: 'completed' })
    await host.checkpoint(second)
    expect(await runInside(second, 'ls n* | wc -l')).toBe('60')
    expect(await countFiles()).toBe(60)
    const calls = await host.events('tool_call_completed')
    expect(calls.map(({ outcome }) => outcome)).toEqual(['interrupted', 'ok'])
  })

  test('one that stood idle until its end is no loss', async () => {
    host = await start({ lifeMs: 2000 })
    const session = await host.provision(1)
    await session.server.lost
    await expect(host.runTurn(session, false)).rejects.toMatchObject({ details: ['planned', 'expires'] })
  })

  test('announced, to one that stands idle: what was left behind in it is captured before it, and it is no loss', async () => {
    const faults: { lifeMs?: number } = { lifeMs: 6000 }
    let released: Promise<void> | undefined
    host = await createTestHost({
      files: { work: 'i=0; while :; do i=$((i+1)); echo $i > n$i; sleep 0.1; done' },
      agentSpec: "command:sh -c 'setsid sh work > /dev/null 2>&1 < /dev/null &'",
      endMarginMs: 1500,
      sandboxes: (real) => createFaultySandboxes(real, faults),
      askToRelease: () => (released ??= host.release(first)),
    })
    const first = await host.provision(1)
    expect(await host.runTurn(first, false)).toMatchObject({ reason: 'completed' })
    await host.checkpoint(first)
    const inTurn = await countFiles()
    await expect
      .poll(async () => (await host.events('sandbox')).at(-1), { timeout: 30_000 })
      .toMatchObject({ state: 'destroyed', reason: 'expires' })
    await released
    expect(Date.now()).toBeLessThan(first.sandbox.expiresAt!)
    const written = await countFiles()
    expect(written).toBeGreaterThan(inTurn)
    expect((await host.events('checkpoint')).at(-1)).toMatchObject({ filesChanged: written })
    delete faults.lifeMs
    const second = await host.provision(2)
    expect((await host.events('recovery')).at(-1)).toMatchObject({
      reason: 'expires',
      proven: true,
      replayed: 0,
    })
    expect(await runInside(second, 'ls n* | wc -l')).toBe(`${written}`)
  })

  test('before it is ready: the failure names the setting', async () => {
    host = await createTestHost({
      files: { x: 'x' },
      setupCommand: 'sleep 60',
      sandboxes: (real) => createFaultySandboxes(real, { lifeMs: 1500 }),
    })
    await expect(host.provision(1)).rejects.toMatchObject({
      type: 'boot_timeout',
      message: expect.stringContaining('sandbox.max_life'),
    })
  })

  test('without notice: what a few seconds may have written is not there, and the recovery says since when', async () => {
    const faults: { lifeMs?: number; unannounced: boolean } = { lifeMs, unannounced: true }
    host = await start(faults as { lifeMs: number })
    const first = await host.provision(1)
    const failure = await host.runTurn(first, false).catch((thrown: unknown) => thrown)
    const lostAt = Date.now()
    expect(failure).toMatchObject({ type: 'sandbox_lost', details: [] })
    await host.release(first)
    delete faults.lifeMs
    const second = await host.provision(2)
    const [recovery] = await host.events('recovery')
    expect(recovery).toMatchObject({ reason: 'lost', proven: true })
    expect(lostAt - recovery!.capturedAt!).toBeLessThan(5000)
    expect(await host.runTurn(second, true)).toMatchObject({ reason: 'completed' })
    expect(await runInside(second, 'ls n* | wc -l')).toBe('60')
  })
})

test('each sandbox gets some work done, however short its life is', () => {
  const deps = { clock: { now: () => 1000 } as never, endMarginMs: 60_000 }
  expect(moveAtOf(deps, undefined)).toBeUndefined()
  expect(moveAtOf(deps, 1000 + 600_000)).toBe(1000 + 540_000)
  expect(moveAtOf(deps, 1000 + 20_000)).toBe(11_000)
  expect(moveAtOf(deps, 500)).toBe(500)
})
