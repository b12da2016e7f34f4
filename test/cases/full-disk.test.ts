import { createHash } from 'node:crypto'
import type { TuttiClient } from '@tutti/client'
import type { TuttiStack } from '@tutti/testkit'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, type Logged } from './agent-driver.ts'
import type { RunJson } from './run-json.ts'
import { runStack, type RunningStack } from './run-stack.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('SEC-06 a sandbox with a small disk', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: RunningStack['repository']
  let start: RunningStack['start']

  beforeAll(async () => {
    const running = await runStack({ TUTTI_MAX_SANDBOXES: '4', TUTTI_SANDBOX_DISK: '48MiB' })
    ;({ stack, client, repository, start } = running)
    return running.remove
  })

  const work = async (...lines: readonly string[]) => {
    const agent = await start(...lines)
    await agent.rest()
    return { agent, events: await agent.events() }
  }
  const endOf = (events: readonly Logged[]) => events.find((event) => event.type === 'turn_ended')
  const changed = (events: readonly Logged[], path: string) =>
    events.findLast((event) => event.type === 'file_change' && event.path === path)
  const diskLimit = { reason: 'resource_limit', detail: expect.stringMatching(/disk space.*sandbox\.disk/) }

  test('SEC-06 a file that takes more than half of it is captured while the agent works, and outlives it', async () => {
    const agent = await start(
      'run: head -c 35000000 /dev/urandom > large; sha256sum large; until [ -e go ]; do sleep 0.1; done; echo 1 > small',
    )
    await agent.waitFor((event) => event.type === 'file_change' && event.path === 'large')
    await client.agents.fileSync({ bcId: agent.bcId, files: [{ path: Buffer.from('go'), mode: '040000' }] })
    await agent.rest()
    const events = await agent.events()
    expect(endOf(events)).toMatchObject({ reason: 'completed' })
    const [sum] = shellOutput(events).split(' ')
    expect(changed(events, 'large')).toMatchObject({ size: 35_000_000, hash: `sha256_${sum}` })
    const positionOf = (fits: (event: Logged) => boolean) => events.findIndex(fits)
    const captured = positionOf((event) => event.type === 'file_change' && event.path === 'large')
    expect(captured).toBeLessThan(positionOf(({ type }) => type === 'tool_call_completed'))
    expect(events.filter(({ type }) => type === 'file_skipped')).toEqual([])
    expect((await stack.run(['agent', 'recover', agent.bcId, '--verify'])).stdout).toContain('as recorded')
    // The next one has beside it the commit that it comes from.
    expect((await stack.run(['agent', 'recover', agent.bcId])).code).toBe(0)
    await agent.followUp(script('run: sha256sum large'))
    await agent.rest()
    expect(shellOutput(await agent.events()).split(`${sum}  large`)).toHaveLength(3)
  })

  test('SEC-06 a result that takes more than half of it is checked in a larger one', async () => {
    const command = 'head -c 35000000 /dev/urandom > large'
    const check = 'test $(stat -c %s large) = 35000000'
    const args = ['--repo', repository.path, '--strategy', 'merge', '--check', check]
    const agents = [command, 'echo 1 > small'].flatMap((line) => ['--agent', `command:sh -c '${line}'`])
    const result = await stack.json<RunJson>(['run', 'do it', ...args, ...agents])
    expect(result).toMatchObject({ phase: 'COMPLETED', reason: 'completed' })
    expect(Object.keys(repository.tree(result.synthesis!.commit))).toContain('large')
  })

  test('SEC-06 a tool whose file does not fit any more ends the turn with the name of the limit', async () => {
    const { events } = await work(
      'run: echo 1 > kept; free=$(df --output=avail -B1 . | tail -1); head -c $((free - 400000)) /dev/zero > nearly',
      `write: large ${'x'.repeat(700_000)}`,
    )
    expect(endOf(events)).toMatchObject(diskLimit)
    expect(changed(events, 'kept')).toBeDefined()
    expect(changed(events, 'nearly')).toBeDefined()
    expect(changed(events, 'large')).toBeUndefined()
  })

  test('SEC-06 a full one: the limit is named, and all files are captured; what is committed is when it has room', async () => {
    const { agent, events } = await work(
      'run: echo 1 > kept; git add kept; git commit -qm mine; head -c 100000000 /dev/zero > rest',
    )
    expect(endOf(events)).toMatchObject(diskLimit)
    expect(changed(events, 'kept')).toMatchObject({ hash: `sha256_${sha256('1\n')}` })
    expect(changed(events, 'rest')).toBeDefined()
    expect(events.filter(({ type }) => type === 'file_skipped')).toMatchObject([
      { path: '.git', reason: 'limit' },
    ])
    await agent.followUp(script('run: rm rest'))
    await agent.rest()
    const later = await agent.events()
    expect(later.filter(({ type }) => type === 'git_commit')).toMatchObject([{ message: 'mine' }])
  })
})

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
