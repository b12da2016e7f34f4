import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { CrashPointName } from '@tutti/core'
import { encodeOffset } from '@tutti/protocol'
import { recoverWorkspace } from '@tutti/workspace/log'
import { afterEach, describe, expect, test } from 'vitest'
import { captureNow, createTestHost, runInside, type TestHost, type TestHostOptions } from './test-host.ts'

const never = new AbortController().signal
const files = { x: 'x', y: 'y', z: 'z', '.gitignore': '*.local\n' }
/** All that a person sees of a workspace and its repository. */
const look =
  'for f in $(find . -path ./.git -prune -o ! -type d -print | sort); do echo $f $(stat -c %a $f) $(cat $f); done; find . -empty -type d -not -path "./.git/*"; git status --porcelain; git log --format=%s; git stash list; git diff --cached --name-only'

let host: TestHost
afterEach(async () => host?.remove())

describe('a workspace that is put back', { timeout: 60_000 }, () => {
  /** An agent that worked on from a state, with a checkpoint between, and what was seen at that state. */
  async function workOn(crash?: () => CrashPointName | undefined, options: Partial<TestHostOptions> = {}) {
    host = await createTestHost({
      files,
      ...options,
      crashPoint: (name, step) =>
        crash?.() === name ? Promise.reject(new Error(`dies at ${name}`)) : step(),
    })
    const session = await host.provision(1)
    await runInside(
      session,
      'echo 1 > x; rm y; chmod +x z; mkdir empty; echo l > a.local; echo c > c; git add c; git commit -qm mine; echo s > staged; git add staged',
    )
    await captureNow(session)
    const seen = await runInside(session, look)
    const { last: at } = await host.store.eventLog.head(host.bcId, never)
    await host.checkpoint(session)
    await runInside(
      session,
      'git commit -qm more; git stash -qu; echo 2 > x; echo 2 > y; rm -rf z empty a.local; mkdir z; echo f > z/f; echo m > b.local; echo late > late',
    )
    await captureNow(session)
    const later = await runInside(session, look)
    const { last } = await host.store.eventLog.head(host.bcId, never)
    return { session, seen, at, later, last }
  }

  test('is put back on a host that has none of the checkpoints', async () => {
    const { session, seen, at } = await workOn()
    await host.checkpoint(session)
    await expect.poll(() => session.mirror.isKept(session.baseCommit, never), { timeout: 20_000 }).toBe(true)
    await host.lose(session)
    rmSync(join(host.folder, 'mirrors'), { recursive: true })
    const back = await host.provision(2, { requestId: 'r', at })
    expect(await runInside(back, look)).toBe(seen)
  })

  test('is to the byte what it was, with its repository; the log goes on, and what was later is there still', async () => {
    const { session, seen, at, later, last } = await workOn()
    expect(seen).not.toBe(later)
    await host.lose(session)
    const back = await host.provision(2, { requestId: 'r', at })
    expect(await runInside(back, look)).toBe(seen)
    const atOffset = encodeOffset(host.bcId, at)
    const [recovery] = await host.events('recovery')
    expect(recovery).toMatchObject({
      requestId: 'r',
      atOffset,
      reason: 'requested',
      proven: true,
      missing: [],
    })
    expect(recovery!.steps?.at(-1)?.name).toBe('put_back')
    expect(await host.events('workspace_restored')).toEqual([
      { type: 'workspace_restored', incarnation: 2, requestId: 'r', atOffset },
    ])
    expect(back.putBackTo).toBe(atOffset)

    // Readers of files follow it as they follow a capture.
    const changes = (await host.events('file_change')).filter(({ incarnation }) => incarnation === 2)
    expect(changes.map(({ path, action }) => `${action} ${path}`).toSorted()).toEqual([
      'created a.local',
      'created empty',
      'created z',
      'deleted b.local',
      'deleted late',
      'deleted y',
      'deleted z/f',
      'modified x',
    ])
    // Nothing is new to the next capture; the next sandbox has it, also with more work on top.
    await captureNow(back)
    expect((await host.events('file_change')).filter(({ incarnation }) => incarnation === 2)).toHaveLength(
      changes.length,
    )
    await runInside(back, 'echo 3 > x')
    await captureNow(back)
    await host.checkpoint(back)
    await host.lose(back)
    const next = await host.provision(3)
    expect(await runInside(next, look)).toBe(seen.replace('./x 644 1', './x 644 3'))
    expect((await host.events('recovery')).at(-1)).toMatchObject({ proven: true, missing: [] })
    // What came after it is a position like any other.
    await host.lose(next)
    expect(await runInside(await host.provision(4, { requestId: 's', at: last }), look)).toBe(later)
    const row = await host.store.catalog.agents.get('local', host.bcId, never)
    expect(row.commit).toBe((await host.events('checkpoint')).at(-1)!.commit)
  })

  test('from a state that is lost: the newest content is gone from the store, and an earlier one is whole', async () => {
    const { session, seen, at } = await workOn()
    await runInside(session, 'head -c 100 /dev/urandom > gone')
    await captureNow(session)
    const { hash } = (await host.events('file_change')).at(-1)!
    host.removeBlob(hash!)
    await host.lose(session)
    await expect(host.provision(2)).rejects.toMatchObject({ type: 'data_loss' })
    const back = await host.provision(3, { requestId: 'r', at })
    expect(await runInside(back, look)).toBe(seen)
  })

  test('to before the first capture it is the source; the agent is not told for ever', async () => {
    const { session } = await workOn()
    await host.lose(session)
    const back = await host.provision(2, { requestId: 'r', at: 1 })
    expect(await runInside(back, 'git status --porcelain; git log --format=%s; cat x y')).toBe('start\nxy')
    await host.lose(back)
    const next = await host.provision(3)
    expect([next.putBackTo, await runInside(next, 'cat x y')]).toEqual([encodeOffset(host.bcId, 1), 'xy'])
  })

  test('an agent whose turn was stopped before it had its prompt is told in the next one, and then no more', async () => {
    const stop = new AbortController()
    host = await createTestHost({
      files,
      agentSpec: 'command:cat',
      crashPoint: (name, step) => {
        if (name === 'turn.run') stop.abort()
        return step()
      },
    })
    await host.lose(await host.provision(1))
    const back = await host.provision(2, { requestId: 'r', at: 1 })
    expect(await host.runTurn(back, false, stop.signal)).toMatchObject({ reason: 'stopped_by_user' })
    const said = async () =>
      (await host.events('shell_output_delta')).flatMap(({ event }) =>
        event.case === 'stdout' ? [event.data.split(' (')[0]] : [],
      )
    expect(await said()).toEqual([])
    expect(await host.runTurn(back, false)).toMatchObject({ reason: 'completed' })
    const told = 'The user has put the working directory back to an earlier state'
    expect(await said()).toEqual([told])
    expect(await host.runTurn(back, false)).toMatchObject({ reason: 'completed' })
    expect(await said()).toEqual([told, 'the prompt'])
  })

  test.each([
    ['the next sandbox of whatever kind', undefined],
    ['the same request', 'r'],
  ] as const)('of so many paths that it takes several appends is ended by %s', async (_, requestId) => {
    let isCut = false
    const { session, seen, at } = await workOn(undefined, {
      eventLog: (real) => ({
        ...real,
        async append(log, producer, records, signal) {
          const appended = await real.append(log, producer, records, signal)
          // The worker dies: nothing comes after it.
          if (isCut && records.some(({ type }) => type === 'workspace_restored'))
            throw new Error('dies between two appends')
          return appended
        },
      }),
    })
    await runInside(session, 'mkdir many; cd many; seq 20050 | xargs touch')
    await captureNow(session)
    await host.lose(session)
    const inRestore = async (incarnation: number) =>
      (await host.events('file_change')).filter((event) => event.incarnation === incarnation).length
    isCut = true
    await expect(host.provision(2, { requestId: 'r', at })).rejects.toMatchObject({ type: 'internal' })
    isCut = false
    const half = await inRestore(2)
    expect(half).toBeGreaterThan(10_000)
    expect(await host.events('checkpoint')).toHaveLength(1)

    const back = await host.provision(3, requestId && { requestId, at })
    expect(await runInside(back, look)).toBe(seen)
    // What the log has already is not said again.
    expect(await inRestore(3)).toBeLessThan(half)
    const atOffset = encodeOffset(host.bcId, at)
    expect((await host.events('recovery')).at(-1)).toMatchObject({ atOffset, proven: true, missing: [] })
    expect(back.putBackTo).toBe(atOffset)
    await host.lose(back)
    const next = await host.provision(4)
    expect(await runInside(next, look)).toBe(seen)
    expect(await inRestore(4)).toBe(0)
  })

  test.for(['restore.commit', 'restore.events'] as const)(
    'is there once when the worker dies at %s and does it again',
    async (name) => {
      let dying: CrashPointName | undefined
      const { session, seen, at, later } = await workOn(() => dying)
      await host.lose(session)
      dying = name
      await expect(host.provision(2, { requestId: 'r', at })).rejects.toMatchObject({ type: 'internal' })
      expect(await host.events('workspace_restored')).toEqual([])
      dying = undefined
      const { changes } = await recoverWorkspace(host.store.eventLog, host.bcId, never)
      expect(changes.length).toBeGreaterThan(0)
      const plain = await host.provision(3)
      expect(await runInside(plain, look)).toBe(later)
      await host.lose(plain)
      const back = await host.provision(4, { requestId: 'r', at })
      await host.lose(back)
      // As when it died right after: the same request finds it done.
      const again = await host.provision(5, { requestId: 'r', at })
      expect(await runInside(again, look)).toBe(seen)
      expect(await host.events('workspace_restored')).toHaveLength(1)
      expect((await host.events('recovery')).at(-1)).toMatchObject({ requestId: 'r', proven: true })
    },
  )
})
