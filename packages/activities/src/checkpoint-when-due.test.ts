import { afterEach, describe, expect, test } from 'vitest'
import { createTestHost, runInside, type TestHost, type TestHostOptions } from './test-host.ts'

let host: TestHost
afterEach(async () => host?.remove())

const [soonMs, neverMs] = [100, 3_600_000]
const start = (line: string, options: Pick<TestHostOptions, 'captureIntervalMs' | 'checkpointIntervalMs'>) =>
  createTestHost({ files: { x: 'x' }, agentSpec: `command:sh -c '${line}'`, ...options })
const subjects = async () => (await host.events('git_commit')).map(({ message }) => message.trim())
const checkpoints = async () => (await host.events('checkpoint')).map(({ filesChanged }) => filesChanged)
/** Nothing else of a test host's makes a checkpoint by itself. */
const checkpointsBecome = (...expected: readonly number[]) =>
  expect.poll(checkpoints, { timeout: 20_000 }).toEqual(expected)

describe('checkpoints before the end of a turn', { timeout: 60_000 }, () => {
  test('at the end of a tool call in which the agent has committed, whatever the interval is', async () => {
    host = await start('echo 1 > x; git commit -qam mine; echo 1 > y', {})
    expect(await host.runTurn(await host.provision(1), false)).toMatchObject({ reason: 'completed' })
    expect(await subjects()).toEqual(['mine'])
    expect(await checkpoints()).toEqual([2])
  })

  test('at the end of a tool call after the interval, when something has changed', async () => {
    host = await start('test -e y || echo 1 > y', { checkpointIntervalMs: 0 })
    const session = await host.provision(1)
    await host.runTurn(session, false)
    expect(await checkpoints()).toEqual([1])
    await host.runTurn(session, true)
    expect(await checkpoints()).toEqual([1])
  })

  test('not at the end of a call that has only written, before the interval is over', async () => {
    host = await start('echo 1 > y', { checkpointIntervalMs: neverMs })
    await host.runTurn(await host.provision(1), false)
    expect((await host.events('file_change')).map(({ path }) => path)).toEqual(['y'])
    expect(await checkpoints()).toEqual([])
  })

  test('in the middle of a call, at a commit', async () => {
    host = await start('echo 1 > x; git commit -qam mine; until test -e go; do sleep 0.05; done', {
      captureIntervalMs: soonMs,
    })
    const session = await host.provision(1)
    const turn = host.runTurn(session, false)
    await checkpointsBecome(1)
    expect(await host.events('tool_call_completed')).toEqual([])
    await runInside(session, 'touch go')
    expect(await turn).toMatchObject({ reason: 'completed' })
  })

  test('in the middle of a call, each time that the interval is over', async () => {
    host = await start(
      'echo 1 > y; until test -e on; do sleep 0.05; done; echo 1 > z; until test -e go; do sleep 0.05; done',
      { captureIntervalMs: soonMs, checkpointIntervalMs: soonMs },
    )
    const session = await host.provision(1)
    const turn = host.runTurn(session, false)
    await checkpointsBecome(1)
    await runInside(session, 'touch on')
    await expect.poll(async () => (await checkpoints()).at(-1), { timeout: 20_000 }).toBe(3)
    expect(await host.events('tool_call_completed')).toEqual([])
    await runInside(session, 'touch go')
    expect(await turn).toMatchObject({ reason: 'completed' })
  })

  test.each([
    ['commits', 'echo 1 > x; git commit -qam mine', {}],
    ['writes', 'echo 1 > y', { checkpointIntervalMs: 0 }],
  ])('after it, when a process that the agent left behind %s', async (_, line, options) => {
    host = await start(
      `setsid sh -c "until test -e go; do sleep 0.05; done; ${line}" > /dev/null 2>&1 < /dev/null &`,
      { captureIntervalMs: soonMs, ...options },
    )
    const session = await host.provision(1)
    expect(await host.runTurn(session, false)).toMatchObject({ reason: 'completed' })
    expect(await checkpoints()).toEqual([])
    await runInside(session, 'touch go')
    await expect.poll(async () => (await checkpoints()).at(-1), { timeout: 20_000 }).toBe(2)
  })
  test('before a release, with what was written until then', async () => {
    host = await start('true', {})
    const session = await host.provision(1)
    await host.runTurn(session, false)
    await runInside(session, 'echo 1 > y')
    await host.release(session)
    expect((await host.events('file_change')).map(({ path }) => path)).toEqual(['y'])
    expect(await checkpoints()).toEqual([1])
  })
})
