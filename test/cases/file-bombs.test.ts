import { execFileSync } from 'node:child_process'
import type { TuttiClient } from '@tutti/client'
import { limits } from '@tutti/core'
import {
  createTestRepository,
  createTuttiStack,
  type RoleProcess,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent, type AgentDriver, type Logged } from './agent-driver.ts'
import { connect } from './connect.ts'
import { script } from './script.ts'
import { watchMemory } from './watch-memory.ts'

const temporalPath = inject('temporalServer')
const MiB = 1 << 20
const quota = 640 * MiB

describe.skipIf(!temporalPath)('SEC-06 file bombs', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let roles: readonly RoleProcess[]
  let neighbour: AgentDriver

  beforeAll(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: {
        TUTTI_MAX_SANDBOXES: '4',
        TUTTI_SANDBOX_DISK: String(quota),
        TUTTI_SANDBOX_FILES: '3000',
        // A capture in the middle of a bomb would make a copy of it beside it.
        TUTTI_CAPTURE_INTERVAL: '10m',
      },
    })
    roles = [await stack.serve('api'), await stack.serve('worker')]
    client = connect(stack)
    repository = createTestRepository({ 'README.md': 'hello\n' })
    neighbour = await start('run: while :; do echo $(date +%s%N); sleep 0.05; done')
    // What opens with the first agents is no growth.
    expect((await (await start('write: warm 1')).rest()).state?.reason).toBe('completed')
  })
  const started: AgentDriver[] = []
  afterEach(async () => {
    for (const { bcId } of started.splice(0)) await client.composers.archiveBackgroundComposer({ bcId })
  })
  afterAll(async () => {
    await stack?.remove()
    repository?.remove()
  })

  const start = (...lines: readonly string[]) =>
    startAgent(client, { prompt: script(...lines), repository: repository.path, agent: 'embedded:scripted' })

  /** How long the neighbour's words take to get here, in milliseconds, while something happens. */
  async function latenciesDuring<T>(
    work: () => Promise<T>,
  ): Promise<{ readonly result: T; readonly p95: number }> {
    const stop = new AbortController()
    const delays: number[] = []
    const from = Date.now()
    const stream = client.agents.streamAgentEvents(
      { bcId: neighbour.bcId, follow: true },
      { signal: stop.signal },
    )
    const reading = (async () => {
      for await (const { eventJson } of stream) {
        if (!eventJson) continue
        for (const [said] of shellOutput([JSON.parse(eventJson) as Logged]).matchAll(/^\d{19}$/gm)) {
          const at = Number(BigInt(said) / 1_000_000n)
          if (at >= from) delays.push(Date.now() - at)
        }
      }
    })().catch(() => {})
    const result = await work()
    // Of fewer, the slowest twentieth is one that was slow by chance.
    await expect.poll(() => delays.length, { timeout: 30_000 }).toBeGreaterThan(60)
    stop.abort()
    await reading
    delays.sort((one, other) => one - other)
    return { result, p95: delays[Math.floor(delays.length * 0.95)]! }
  }
  const diskUse = () =>
    Number(execFileSync('du', ['-skx', stack.dataDir], { encoding: 'utf8' }).split('\t')[0]) * 1024
  const changed = (events: readonly Logged[]) =>
    events.flatMap((event) => (event.type === 'file_change' ? [event.path] : []))

  const deepTree = `node -e 'const fs = require("fs"), path = Array(2000).fill("d").join("/"); fs.mkdirSync(path, { recursive: true }); fs.writeFileSync(path + "/end", "e")'`
  interface Bomb {
    readonly lines: readonly string[]
    readonly reason: string
    /** What the stream says of the limit. */
    readonly says: RegExp
    readonly files: readonly string[]
  }
  const bombs: Readonly<Record<string, Bomb>> = {
    'sparse files, of 1 TiB and of more than is captured': {
      lines: [
        `run: echo 1 > kept; truncate -s 1T sparse; stat -c %s sparse; truncate -s ${limits.maxFileBytes + 1} large; echo 2 > after`,
      ],
      reason: 'completed',
      says: /File size limit exceeded.*"path":"large","reason":"too_large"/,
      files: ['kept', 'after'],
    },
    'a full disk': {
      lines: ['run: echo 1 > kept; head -c 1G /dev/zero > full'],
      reason: 'resource_limit',
      says: /"path":"full","reason":"too_large".*sandbox\.disk/,
      files: ['kept'],
    },
    '100,000 files': {
      lines: ['run: echo 1 > kept; seq 100000 | xargs touch'],
      reason: 'resource_limit',
      says: /sandbox\.files/,
      files: ['kept', '1', '2900'],
    },
    'a line of 1 GiB': {
      lines: [`run: echo 1 > kept; head -c 1G /dev/zero | tr '\\0' x; echo; echo 2 > after`],
      reason: 'completed',
      says: /"case":"truncated","bytes":10\d{8},/,
      files: ['kept', 'after'],
    },
    'a tree of 2,000 levels': {
      lines: [`run: echo 1 > kept; ${deepTree}; echo 2 > after`],
      reason: 'completed',
      says: /d\/d\/end/,
      files: ['kept', 'after', `${'d/'.repeat(2000)}end`],
    },
  }

  test.each(Object.entries(bombs))(
    'SEC-06 %s: told of, and nothing but the sandbox suffers',
    async (_name, bomb) => {
      const { p95: before } = await latenciesDuring(async () => {})
      const memory = roles.map(({ ready }) => watchMemory(ready.pid))
      const used = diskUse()
      const { result: agent, p95 } = await latenciesDuring(async () => {
        const made = await start(...bomb.lines)
        started.push(made)
        await made.rest()
        return made
      })
      const events = await agent.events()
      expect((await agent.get()).state?.reason).toBe(bomb.reason)
      expect(JSON.stringify(events)).toMatch(bomb.says)
      expect(changed(events)).toEqual(expect.arrayContaining([...bomb.files]))
      expect(diskUse() - used).toBeLessThan(quota * 1.1)
      for (const grown of memory) expect(grown()).toBeLessThan(128 * MiB)
      // The floor: alone, the neighbour needs less than a tenth of a second, and a bomb has the cores and the disk by right, as any agent
      // has (SEC-07). On two cores that alone is more than twice as much (75 to 170 ms, 86 to 246 ms); what a bomb does to the parts that
      // all share, a queue that fills or a process that stands still, is seconds.
      expect(p95).toBeLessThan(Math.max(2 * before, 500))
    },
  )
})
