import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { loseSandbox, type LostSandbox } from './recovery-driver.ts'
import { runStack } from './run-stack.ts'
import { killAll, sandboxesOf } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

/** REC-09: rules, and what an agent makes beside them. */
const ignoring = { '.gitignore': '*.local\ncache/\nnode_modules/\n', kept: 'k' }
const makeIgnored = [
  'head -c 200 /dev/urandom > dev.local; mkdir cache node_modules; head -c 5242880 /dev/urandom > cache/big',
  'echo x > node_modules/x; head -c 1024 /dev/urandom > out.gen; echo "*.gen" >> .gitignore; echo SECRET=1 > .env; echo .env >> .gitignore',
].join('\n')
/** What the one recovery tells of. */
function missingOf({ since }: LostSandbox) {
  const recoveries = since.filter((event) => event.type === 'recovery')
  expect(recoveries).toHaveLength(1)
  return recoveries[0]!.missing.toSorted((left, right) => (left.path < right.path ? -1 : 1))
}

describe.skipIf(!temporalPath)('what is told of a recovery', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  const repositories: TestRepository[] = []

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    await stack.start()
    client = connect(stack)
  })
  afterEach(() => {
    for (const repository of repositories.splice(0)) repository.remove()
  })
  afterAll(() => stack.remove())

  const repositoryOf = (files: Readonly<Record<string, string>>) => {
    const repository = createTestRepository(files)
    repositories.push(repository)
    return repository
  }

  test('REC-09 files that git ignores: what the policy covers is back, the rest is listed by path', async () => {
    const repository = repositoryOf(ignoring)
    const lost = await loseSandbox(stack, client, repository, makeIgnored, 'git status --porcelain')
    const { 'cache/big': big, 'node_modules/x': module, '.env': env, ...covered } = lost.before
    expect([big, module, env]).not.toContain(undefined)
    expect(Object.keys(covered).sort()).toEqual(['.gitignore', 'dev.local', 'kept', 'out.gen'])
    // Its folder is not listed: it is there, and what was in it is not.
    expect(lost.after).toEqual({ ...covered, 'cache/': 'empty' })
    expect(lost.output).toBe(' M .gitignore\n')
    expect(missingOf(lost)).toEqual([
      { path: '.env', reason: 'ignored' },
      { path: 'cache/big', reason: 'ignored' },
      { path: 'node_modules/', reason: 'ignored' },
    ])
    // What git ignores is in no pull request.
    const { branch } = await client.agents.deliverAgent({ bcId: lost.agent.bcId })
    expect(Object.keys(repository.tree(branch)).sort()).toEqual(['.gitignore', 'kept'])
  })

  test('REC-19 the agent remembers after recovery', async () => {
    const agent = await startAgent(client, {
      prompt: script('say: turn 1'),
      repository: repositoryOf({ kept: 'k' }).path,
      agent: 'embedded:scripted',
    })
    await agent.rest()
    const asked = (turn: number) => (turn === 3 ? 'the code word is amber-17' : `this is turn ${turn}`)
    for (let turn = 2; turn <= 12; turn += 1) {
      await agent.followUp(script(`say: ${asked(turn)}`))
      await agent.rest()
    }
    const before = (await agent.events()).length
    killAll(sandboxesOf(stack).flat())
    await agent.followUp(script('echo-context:'))
    expect((await agent.rest()).state?.reason).toBe('completed')
    const since = (await agent.events()).slice(before)
    const said = since.map((event) => (event.type === 'text_delta' ? event.text : '')).join('')
    const numbers = [...said.matchAll(/message (\d+) of (\d+)/g)].map(([, number, all]) => `${number}/${all}`)
    expect(numbers).toEqual(Array.from({ length: 13 }, (_, index) => `${index + 1}/13`))
    for (let turn = 2; turn <= 12; turn += 1) expect(said.split(asked(turn))).toHaveLength(2)
    expect(said).toContain('amber-17')
    expect(said.split('Your sandbox was lost')).toHaveLength(2)
    expect(since.filter((event) => event.type === 'recovery')).toMatchObject([
      { reason: 'lost', incarnation: 2, replayed: 0, proven: true },
    ])
    expect(since.filter((event) => event.type === 'user_message')).toHaveLength(1)
  })
})

describe.skipIf(!temporalPath)('REC-09 with other settings', { timeout: 120_000 }, () => {
  const all = ['.env', '.gitignore', 'cache/big', 'dev.local', 'kept', 'node_modules/x', 'out.gen']
  const lose = async (env: Readonly<Record<string, string>>) => {
    const { stack, client, repository, remove } = await runStack(env, ignoring)
    onTestFinished(remove)
    const lost = await loseSandbox(stack, client, repository, makeIgnored, 'git status --porcelain')
    expect(Object.keys(lost.before).sort()).toEqual(all)
    expect(lost.output).toBe(' M .gitignore\n')
    return lost
  }

  test('REC-09 none of the files that git ignores is kept', async () => {
    const lost = await lose({ TUTTI_IGNORED_FILES: 'none' })
    const { '.gitignore': rules, kept } = lost.before
    expect(lost.after).toEqual({ '.gitignore': rules, kept })
    expect(missingOf(lost)).toEqual(
      ['.env', 'cache/', 'dev.local', 'node_modules/', 'out.gen'].map((path) => ({
        path,
        reason: 'ignored',
      })),
    )
  })

  test('REC-09 all of them are kept, those with secrets too', async () => {
    const lost = await lose({ TUTTI_IGNORED_FILES: 'all', TUTTI_ENV_FILES: 'yes' })
    expect(lost.after).toEqual(lost.before)
    expect(missingOf(lost)).toEqual([])
  })
})
