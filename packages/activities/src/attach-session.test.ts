import { createFaultySandboxes, type SandboxFaults } from '@tutti/sandbox/faulty'
import { afterEach, describe, expect, test } from 'vitest'
import type { HostSession } from './sessions.ts'
import { captureNow, createTestHost, runInside, type TestHost, type TestHostOptions } from './test-host.ts'

let host: TestHost
afterEach(async () => host?.remove())

describe('a sandbox that stood idle is taken up again', { timeout: 60_000 }, () => {
  /** An agent at rest that has made files. */
  async function rest(
    { files = 30, faults = {} as SandboxFaults } = {},
    options: Partial<TestHostOptions> = {},
  ): Promise<HostSession> {
    host = await createTestHost({
      files: { x: 'x' },
      agentSpec: 'command:true',
      sandboxes: (real) => createFaultySandboxes(real, faults),
      ...options,
    })
    const session = await host.provision(1)
    await runInside(session, `i=0; while [ $i -lt ${files} ]; do i=$((i+1)); echo $i > n$i; done`)
    await captureNow(session)
    expect(await host.runTurn(session, false)).toMatchObject({ reason: 'completed' })
    await host.checkpoint(session)
    return session
  }
  /** As a look between turns finds it. */
  async function restQuietly(...given: Parameters<typeof rest>): Promise<HostSession> {
    const session = await rest(...given)
    session.quiet = true
    return session
  }
  const deletions = async () =>
    (await host.events('file_change')).filter(({ action }) => action === 'deleted')
  /** The turn that comes next is not run there; the one after it has everything. */
  async function expectLost(session: HostSession, message: RegExp, files = 30) {
    const turns = (await host.events('turn_started')).length
    await expect(host.runTurn(session, false)).rejects.toMatchObject({
      type: 'sandbox_lost',
      details: [],
      message: expect.stringMatching(message),
    })
    expect(await host.events('turn_started')).toHaveLength(turns)
    await host.release(session)
    expect(await deletions()).toEqual([])
    expect((await host.events('sandbox')).at(-1)).toMatchObject({ state: 'lost', incarnation: 1 })
    const { manifestDigest } = (await host.events('workspace_captured')).at(-1)!
    const next = await host.provision(2)
    expect((await host.events('recovery')).at(-1)).toMatchObject({
      manifestDigest,
      proven: true,
      missing: [],
    })
    expect(await runInside(next, 'ls | wc -l')).toBe(`${files + 1}`)
  }

  test('as it was: the next turn runs in it', async () => {
    const session = await restQuietly()
    expect(await host.runTurn(session, false)).toMatchObject({ reason: 'completed' })
    expect(await deletions()).toEqual([])
  })

  test('SBX-03 with an empty disk: nothing counts as deleted, it is recovered before anything runs', async () => {
    const faults: SandboxFaults = {}
    const session = await restQuietly({ files: 2000, faults })
    faults.resumesEmpty = true
    await expectLost(session, /not the sandbox that it was/, 2000)
  })

  test('SBX-03 with files that are gone although nothing has run: the same', async () => {
    const session = await restQuietly()
    await runInside(session, 'rm n1*')
    await expectLost(session, /not what was captured/)
  })

  test('gone: the same', async () => {
    const session = await restQuietly()
    await host.deps.sandboxes.destroy(session.sandbox.ref, new AbortController().signal)
    await expectLost(session, /gone/)
  })

  test('with what processes have written meanwhile: it is captured as ever', async () => {
    const session = await rest()
    await runInside(session, 'rm n1; echo more > more')
    expect(await host.runTurn(session, false)).toMatchObject({ reason: 'completed' })
    await captureNow(session)
    expect((await deletions()).map(({ path }) => path)).toEqual(['n1'])
  })

  test('with what a process wrote that had ended when somebody first looked: that look captures it', async () => {
    const ended = Promise.withResolvers<void>()
    const session = await rest(
      {},
      {
        captureIntervalMs: 50,
        agentServer: (real) => ({
          ...real,
          hasProcesses: (signal) => ended.promise.then(() => real.hasProcesses(signal)),
        }),
      },
    )
    await runInside(session, 'rm n1; echo more > more')
    ended.resolve()
    await expect.poll(deletions, { timeout: 20_000 }).toMatchObject([{ path: 'n1' }])
    await expect.poll(() => session.quiet).toBe(true)
    expect(await host.runTurn(session, false)).toMatchObject({ reason: 'completed' })
  })

  test('with what the check of an attempt has written: the same', async () => {
    const session = await restQuietly({}, { checkCommand: 'rm n1; echo more > more' })
    await host.check(session)
    expect(await host.runTurn(session, false)).toMatchObject({ reason: 'completed' })
    await captureNow(session)
    expect((await deletions()).map(({ path }) => path)).toEqual(['n1'])
  })
})
