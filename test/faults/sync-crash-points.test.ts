import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { syncCrashPoints, type CrashPointName } from '@tutti/core'
import {
  createFaultProxy,
  createTestRepository,
  createTuttiStack,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { startAgent, type AgentDriver } from '../cases/agent-driver.ts'
import { connect } from '../cases/connect.ts'
import { listFolder, listNow, type Listing } from '../cases/recovery-driver.ts'
import { script } from '../cases/script.ts'

const temporalPath = inject('temporalServer')
const names = Object.keys(syncCrashPoints) as (keyof typeof syncCrashPoints)[]
/** Each right before and right after it; with several passings, in the middle of several files too. */
const ofBothWays = (at: readonly CrashPointName[], passings: readonly number[]) =>
  at.flatMap((name) =>
    passings.flatMap((passing) => [`${name}:before:${passing}`, `${name}:after:${passing}`]),
  )

describe.skipIf(!temporalPath)('a sync that dies at a durable step', { timeout: 300_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let parent: string
  let folder: string

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ both: 'b', 'theirs/1': '1', 'theirs/2': '2', link: 'l', gone: 'g' })
  })
  afterEach(() => rmSync(parent, { recursive: true, force: true }))
  afterAll(async () => {
    await stack?.remove()
    repository?.remove()
  })

  async function begin(): Promise<AgentDriver> {
    newFolder()
    const prompt = script('run: true')
    const agent = await startAgent(client, {
      prompt,
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    expect((await agent.rest()).state?.reason).toBe('completed')
    return agent
  }
  function newFolder(): void {
    parent = mkdtempSync(join(tmpdir(), 'tutti-sync-crash-'))
    folder = join(parent, 'work')
  }
  async function work(agent: AgentDriver, ...commands: readonly string[]): Promise<void> {
    await agent.followUp(script('run: <<EOF', 'set -e', ...commands, 'EOF'))
    expect((await agent.rest()).state?.reason).toBe('completed')
  }
  async function synced({ bcId }: AgentDriver): Promise<string> {
    const { code, stdout, stderr } = await stack.run(['sync', bcId, folder, '--once'])
    expect([code, stderr]).toEqual([0, 'In step.\n'])
    return stdout
  }
  async function diesAt({ bcId }: AgentDriver, order: string): Promise<void> {
    const env = { TUTTI_CRASH_AT: order }
    const { code, stdout, stderr } = await stack.cli(['sync', bcId, folder, '--once'], { env }).done
    const stamp = `crashed-${order.replaceAll(':', '-')}`
    expect([code, existsSync(join(folder, '.tutti/crashed', stamp))], stdout + stderr).toEqual([null, true])
  }
  const at = (name: string) => join(folder, name)
  const read = (name: string) => (existsSync(at(name)) ? readFileSync(at(name), 'utf8') : undefined)
  const local = (): Listing =>
    Object.fromEntries(Object.entries(listFolder(folder)).filter(([key]) => !key.startsWith('.tutti/')))
  /** What log and stores have of the agent's workspace. */
  async function remote({ bcId }: AgentDriver): Promise<Listing> {
    const found: Record<string, string> = {}
    let [key, mode, content] = ['', '', Buffer.alloc(0)]
    const add = () => {
      if (mode === '040000') found[key] = 'empty'
      else if (mode === '120000') found[key] = `link ${content.toString('latin1')}`
      else if (mode) found[key] = `${mode.slice(3)} ${createHash('sha256').update(content).digest('hex')}`
    }
    for await (const { part } of client.agents.readWorkspace({ bcId })) {
      if (part.case === 'content') content = Buffer.concat([content, part.value])
      else add()
      if (part.case === 'entry')
        [key, mode, content] = [
          Buffer.from(part.value.path).toString('latin1'),
          part.value.mode,
          Buffer.alloc(0),
        ]
    }
    return found
  }
  /** Nothing more is to be done, and nothing unfinished is there. */
  async function expectInStep(agent: AgentDriver): Promise<void> {
    expect(await synced(agent)).toBe('')
    expect(local()).toEqual(await remote(agent))
    expect(readdirSync(at('.tutti')).toSorted()).toEqual([
      '.gitignore',
      'crashed',
      'sync.sqlite',
      'sync.sqlite-journal',
      'tmp',
    ])
    expect(readdirSync(at('.tutti/tmp'))).toEqual([])
  }
  const sentPaths = async (agent: AgentDriver) =>
    (await agent.events()).flatMap((event) => (event.type === 'file_sync' ? [event.path] : []))

  test('goes on with all of both sides: nothing of the user’s is lost, nothing of the agent’s taken for theirs', async () => {
    const agent = await begin()
    await synced(agent)
    // Those that leave in the folder what the agent changes once more before the next run.
    const orders = ofBothWays(names, [1]).concat('sync.place:after:2', 'sync.agreed:before:2')
    for (const [round, order] of orders.entries()) {
      const made = (by: string) => `${by}-${round}`
      const earlier = (by: string) => `${by}-${round - 1}`
      await work(
        agent,
        `echo first > ${made('theirs')}; echo ${round} > theirs/1; echo ${round} > theirs/2; echo ${round} > both`,
        `rm -f ${earlier('theirs')} link; ln -s ${made('theirs')} link`,
      )
      writeFileSync(at(made('mine')), `mine ${round}`)
      writeFileSync(at('both'), `mine ${round}`)
      if (round > 0) unlinkSync(at(earlier('mine')))
      const before = (await sentPaths(agent)).length

      await diesAt(agent, order)
      // In the meantime the agent goes on, and the user too.
      await work(agent, `echo second > ${made('theirs')}`)
      writeFileSync(at('again'), `mine ${round}`)
      await synced(agent)

      expect(
        [made('theirs'), earlier('theirs'), made('mine'), earlier('mine'), 'both', 'again'].map(read),
        order,
      ).toEqual(['second\n', undefined, `mine ${round}`, undefined, `mine ${round}`, `mine ${round}`])
      const ofUsers = [made('mine'), earlier('mine'), 'both', 'again']
      for (const path of (await sentPaths(agent)).slice(before)) expect(ofUsers, order).toContain(path)
      await expectInStep(agent)
    }
    expect(local()).toEqual(await listNow(agent))
  })

  test('goes on in the first reading of a workspace', async () => {
    const agent = await begin()
    rmSync(parent, { recursive: true })
    const ofReading = ['sync.log', 'sync.temporary', 'sync.placing', 'sync.place', 'sync.agreed'] as const
    for (const order of ofBothWays(ofReading, [1]).concat('sync.temporary:after:3', 'sync.place:after:3')) {
      newFolder()
      await diesAt(agent, order)
      await work(agent, `echo ${order} > theirs/1`)
      await synced(agent)
      expect(read('theirs/1'), order).toBe(`${order}\n`)
      expect(await sentPaths(agent), order).toEqual([])
      await expectInStep(agent)
      rmSync(parent, { recursive: true })
    }
  })

  test('goes on when the server has done what was asked and its answer is lost', async () => {
    const agent = await begin()
    await synced(agent)
    const { address } = stack.ready()
    const proxy = await createFaultProxy(address, { namesTarget: true })
    const env = { TUTTI_API_KEY: readFileSync(join(stack.dataDir, 'local-key'), 'utf8').trim() }
    try {
      // One that does not stay says that its server went away, but for what it must not do twice.
      for (const [part, exit] of [
        ['/blobs/sha256_', 69],
        ['/FileSync', 0],
      ] as const) {
        const before = (await sentPaths(agent)).length
        writeFileSync(at('both'), `mine ${part}`)
        proxy.fail(
          { kind: 'lost_answer' },
          { when: ({ method, url }) => method !== 'GET' && url.includes(part) },
        )
        const lost = proxy.nextFault()
        const args = ['--address', proxy.endpoint, 'sync', agent.bcId, folder, '--once']
        const { code, stderr } = await stack.cli(args, { env }).done
        expect(code, stderr).toBe(exit)
        expect((await lost).url).toContain(part)
        await synced(agent)
        expect(read('both')).toBe(`mine ${part}`)
        expect((await sentPaths(agent)).slice(before)).toEqual(['both'])
        expect(await synced(agent)).toBe('')
        expect(local()).toEqual(await remote(agent))
      }
    } finally {
      await proxy.close()
    }
  })
})
