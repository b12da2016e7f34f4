import { readdirSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { driveAgent, startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { commands, list, listFolder, listingIn, listNow, type Listing } from './recovery-driver.ts'

const temporalPath = inject('temporalServer')

interface Swept {
  readonly examined: number
  readonly removed: number
}

describe.skipIf(!temporalPath)('what is kept of an agent, and for how long', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository
  let folder: string
  let bcId: string
  let before: Listing

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tutti-retention-'))
    repository = createTestRepository({ 'a.txt': 'a\n', 'b.txt': 'b\n', '.gitignore': '*.local\n' })
    stack = await createTuttiStack({ temporalPath: temporalPath! })
    await stack.start()
    const work =
      'echo changed > a.txt; rm b.txt; mkdir d empty; printf "x\\0" > d/x; chmod +x d/x; ln -s x d/link; echo 1 > dev.local'
    const agent = await startAgent(connect(stack), {
      prompt: commands(work, list),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    bcId = agent.bcId
    await agent.rest()
    before = listingIn(await agent.events())
    expect(Object.keys(before)).toContain('dev.local')
  }, 120_000)
  afterAll(async () => {
    await stack.remove()
    repository.remove()
    await rm(folder, { recursive: true, force: true })
  })

  const workspace = async (name: string) => {
    const to = join(folder, name)
    const run = await stack.run(['agent', 'workspace', bcId, '--to', to])
    expect(run).toMatchObject({ code: 0 })
    return { listing: listFolder(to), said: run.stdout + run.stderr }
  }

  test('with the mirrors, the source and its base gone, the files are there, and the agent goes on', async () => {
    const archived = () => readdirSync(join(stack.dataDir, 'archive'), { recursive: true }).map(String)
    await expect.poll(archived, { timeout: 30_000 }).toContainEqual(expect.stringMatching(/\.base\.pack$/))
    expect((await workspace('before')).listing).toEqual(before)
    await stack.stop()
    rmSync(join(stack.dataDir, 'mirrors'), { recursive: true })
    repository.remove()
    await stack.start()
    expect((await workspace('after')).listing).toEqual(before)
    expect(await listNow(driveAgent(connect(stack), bcId))).toEqual(before)
    expect((await stack.run(['agent', 'diff', bcId])).stdout).toContain('+changed')
  })

  test('a sweep removes nothing that is needed', async () => {
    const swept = await stack.json<Swept>(['gc', '--dry-run'])
    expect(swept.examined).toBeGreaterThan(5)
    expect(swept.removed).toBe(0)
    expect((await stack.run(['gc'])).stdout).toMatch(/^removed 0 of \d+ blobs/)
  })

  test('with the database gone too, the agent is made again from the archive and the blobs, and goes on', async () => {
    const events = await driveAgent(connect(stack), bcId).events()
    await stack.stop()
    for (const name of readdirSync(stack.dataDir))
      if (name.startsWith('tutti.db')) rmSync(join(stack.dataDir, name))
    rmSync(join(stack.dataDir, 'mirrors'), { recursive: true })
    const rebuilt = await stack.json<{ logs: object[] }>(['admin', 'rebuild'])
    expect(rebuilt.logs).toEqual([{ log: bcId, there: false, last: expect.any(Number) as number }])
    expect((await stack.json<{ logs: object[] }>(['admin', 'rebuild'])).logs).toMatchObject([{ there: true }])
    await stack.start()
    const agent = driveAgent(connect(stack), bcId)
    expect((await agent.events()).slice(0, events.length)).toEqual(events)
    expect(await agent.state()).toBe('IDLE')
    expect((await workspace('rebuilt')).listing).toEqual(before)
    expect(await listNow(agent)).toEqual(before)
    expect((await stack.run(['agent', 'get', bcId])).stdout).toContain('IDLE')
  })

  test('an EXPIRED agent says what is kept of it, which is its last commit', async () => {
    await stack.stop()
    await stack.start({ TUTTI_RETENTION: '1s' })
    const agent = driveAgent(connect(stack), bcId)
    await expect.poll(() => agent.state(), { timeout: 60_000 }).toBe('EXPIRED')
    // Of what was stored in the last second nothing goes: two that find the same, more than a second apart, have found all.
    let found = 0
    const findsAll = async () => {
      const last = found
      found = (await stack.json<Swept>(['gc', '--dry-run'])).removed
      return found > 2 && found === last
    }
    await expect.poll(findsAll, { timeout: 30_000, interval: 1500 }).toBe(true)
    expect((await stack.run(['gc', '--dry-run'])).stdout).toContain(`would remove ${found} of `)
    expect((await stack.json<Swept>(['gc'])).removed).toBe(found)
    expect((await stack.json<Swept>(['gc'])).removed).toBe(0)
    const { listing, said } = await workspace('expired')
    const { 'dev.local': local, ...committed } = before
    expect(local).toBeDefined()
    expect(listing).toEqual(committed)
    expect(said).toContain('not there: dev.local (expired)')
    const { stdout } = await stack.run(['agent', 'get', bcId])
    expect(stdout).toMatch(/Its last commit [0-9a-f]{40} is kept for ever/)
    expect((await agent.events()).length).toBeGreaterThan(10)
  })
})
