import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, Connection } from '@temporalio/client'
import type { TuttiClient } from '@tutti/client'
import type { TestRepository, TuttiStack } from '@tutti/testkit'
import { afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import type { AgentDriver } from './agent-driver.ts'
import { nothingLeft } from './nothing-left.ts'
import { runStack, type RunningStack } from './run-stack.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

/** A web server, a session leader of its own that ignores SIGTERM, and a loop: all detached, each with a word to know it by. */
const leaveBehind = [
  'run: <<EOF',
  `setsid node -e 'require("http").createServer((_, r) => r.end("ok")).listen(8080, "127.0.0.1", () => console.log("WEB"))' > web.log 2>&1 &`,
  `setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 911; done' > /dev/null 2>&1 &`,
  `(while :; do date > /tmp/tick; sleep 0.12; done) > /dev/null 2>&1 &`,
  'until grep -q WEB web.log; do sleep 0.05; done',
  'EOF',
]
const left = /8080|sleep 911|sleep 0\.12/

describe.skipIf(!temporalPath)('SBX-06 nothing remains after the end', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let startOne: RunningStack['start']

  beforeAll(async () => {
    const running = await runStack({ TUTTI_MAX_SANDBOXES: '4', TUTTI_INACTIVITY: '2s' })
    ;({ stack, client, repository, start: startOne } = running)
    return running.remove
  })

  /** One that a failed test has left in the middle must not fail the next one. */
  const started: AgentDriver[] = []
  afterEach(async () => {
    for (const { bcId } of started.splice(0)) await client.agents.stopAgent({ bcId })
  })
  const start = async (...lines: readonly string[]) => {
    const agent = await startOne(...lines)
    started.push(agent)
    return agent
  }

  /** An agent in the middle of a turn with all three things running. */
  async function busyAgent(): Promise<AgentDriver> {
    const agent = await start(...leaveBehind, 'run: echo all-up; sleep 912')
    await agent.waitFor(
      (event) => event.type === 'shell_output_delta' && JSON.stringify(event).includes('all-up'),
    )
    for (const word of ['8080', 'sleep 911', 'sleep 912']) {
      await expect.poll(() => stack.sandboxProcesses().join('\n')).toContain(word)
    }
    return agent
  }
  const sandboxIds = () => [
    ...new Set(readdirSync(join(stack.dataDir, 'sandboxes')).map((name) => name.split('.')[0]!)),
  ]
  /** Kernel groups of these sandboxes, in whatever hierarchy. */
  function groupsOf(ids: readonly string[]): string[] {
    const own = readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => / - cgroup2? /.test(line))
      .map((line) => line.split(' ')[4]!)
    return own.flatMap((mount) =>
      readdirSync(mount, { recursive: true, encoding: 'utf8' })
        .filter((name) => ids.some((id) => name.endsWith(`tutti-${id}`)))
        .map((name) => join(mount, name)),
    )
  }

  test('SBX-06 stop: what the tool started is gone within 5 s, the sandbox when it is not used any more', async () => {
    const agent = await busyAgent()
    const ids = sandboxIds()
    expect(ids).toHaveLength(1)
    const stoppedAt = Date.now()
    await client.agents.stopAgent({ bcId: agent.bcId })
    await expect
      .poll(() => stack.sandboxProcesses().filter((line) => left.test(line)), { timeout: 5000 })
      .toEqual([])
    expect(Date.now() - stoppedAt).toBeLessThan(5000)
    await nothingLeft(stack, 10_000)
    expect(groupsOf(ids)).toEqual([])
    expect(await agent.state()).toBe('IDLE')
  })

  test('SBX-06 cancelled from outside, as by an operator in the Temporal UI: nothing of the sandbox is left within 5 s', async () => {
    const agent = await busyAgent()
    const ids = sandboxIds()
    const connection = await Connection.connect({ address: stack.ready().temporal_address })
    try {
      await new Client({ connection }).workflow.getHandle(`agent/${agent.bcId}`).cancel()
      await nothingLeft(stack, 5000)
    } finally {
      await connection.close()
    }
    expect(groupsOf(ids)).toEqual([])
    expect(await agent.state()).toBe('IDLE')
  })

  test('SBX-06 archive in the middle of a turn: nothing of the sandbox is left', async () => {
    const agent = await busyAgent()
    const ids = sandboxIds()
    await client.composers.archiveBackgroundComposer({ bcId: agent.bcId })
    await nothingLeft(stack, 30_000)
    expect(groupsOf(ids)).toEqual([])
    expect(await agent.state()).toBe('ARCHIVED')
  })

  test('SBX-06 release for inactivity takes along what a completed turn has left running', async () => {
    const agent = await start(...leaveBehind)
    await agent.rest()
    const ids = sandboxIds()
    await nothingLeft(stack, 30_000)
    expect(groupsOf(ids)).toEqual([])
    expect(await agent.state()).toBe('IDLE')
    // It is only asleep.
    await agent.followUp(script('write: awake.txt yes'))
    const rest = await agent.rest()
    expect(rest.state?.reason).toBe('completed')
    await nothingLeft(stack, 30_000)
  })

  test('SBX-06 fifty rounds of create and cancel leave handles and processes of the server as they were', async () => {
    const { pid } = stack.ready()
    const handles = () => readdirSync(`/proc/${pid}/fd`).length
    const children = () =>
      readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).length
    const round = async (moment: number) => {
      const agent = await start('run: echo here; sleep 913')
      const states = ['creating', 'hydrating', 'ready'] as const
      const state = states[moment % 4]
      await agent.waitFor((event) =>
        state ? event.type === 'sandbox' && event.state === state : event.type === 'shell_output_delta',
      )
      await client.composers.archiveBackgroundComposer({ bcId: agent.bcId })
      await agent.rest()
    }
    const settled = async () => {
      await nothingLeft(stack, 30_000)
      return { handles: handles(), children: children() }
    }
    // The first ones open what stays open: connections, prepared statements.
    for (let moment = 0; moment < 4; moment += 1) await round(moment)
    const before = await settled()
    for (let moment = 0; moment < 50; moment += 1) await round(moment)
    await settled()
    await expect.poll(children, { timeout: 10_000 }).toBe(before.children)
    await expect.poll(handles, { timeout: 30_000 }).toBeLessThanOrEqual(before.handles)
    expect(existsSync(join(stack.dataDir, 'sandboxes'))).toBe(true)
  })

  /** How an agent can keep its sandbox from answering, after it has made `kept.txt`. */
  const silent: readonly (readonly [string, string])[] = [
    [
      'puts fifos into its .git',
      `rm -f .git/info/exclude; mkfifo .git/info/exclude; rm -f .git/HEAD; mkfifo .git/HEAD; echo 2 > two; echo 'x/' > .gitignore; sleep 912`,
    ],
    ['stops the agent server', 'kill -STOP $PPID; sleep 912'],
  ]
  test.each(silent)(
    'SBX-06 a stop ends the turn of an agent that %s, and keeps its work',
    async (_, line) => {
      const agent = await start('run: echo kept > kept.txt', `run: ${line}`)
      await agent.waitFor((event) => event.type === 'file_change' && event.path === 'kept.txt')
      await expect.poll(() => stack.sandboxProcesses().join('\n'), { timeout: 10_000 }).toContain('sleep 912')
      const from = Date.now()
      await client.agents.stopAgent({ bcId: agent.bcId })
      const end = await agent.waitFor((event) => event.type === 'turn_ended')
      // Other tests share the cores: twice the limit.
      expect(Date.now() - from).toBeLessThan(10_000)
      expect(end).toMatchObject({ reason: 'stopped_by_user' })
      expect(stack.sandboxProcesses().join('\n')).not.toContain('sleep 912')
      const { branch } = await client.agents.deliverAgent({ bcId: agent.bcId })
      expect(repository.git('show', `${branch}:kept.txt`)).toBe('kept\n')

      await agent.followUp('run: test "$(cat kept.txt)" = kept')
      expect((await agent.rest()).state?.reason).toBe('completed')
      await client.composers.archiveBackgroundComposer({ bcId: agent.bcId })
      await expect.poll(agent.state, { timeout: 5000 }).toBe('ARCHIVED')
      await nothingLeft(stack)
    },
  )
})
