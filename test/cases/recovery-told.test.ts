import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { loseSandbox } from './recovery-driver.ts'
import { killAll, sandboxesOf } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

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
    const repository = repositoryOf({ '.gitignore': '*.local\ncache/\nnode_modules/\n', kept: 'k' })
    const lost = await loseSandbox(
      stack,
      client,
      repository,
      [
        'head -c 200 /dev/urandom > dev.local; mkdir cache node_modules; head -c 5242880 /dev/urandom > cache/big',
        'echo x > node_modules/x; head -c 1024 /dev/urandom > out.gen; echo "*.gen" >> .gitignore; echo SECRET=1 > .env; echo .env >> .gitignore',
      ].join('\n'),
      'git status --porcelain',
    )
    const { 'cache/big': big, 'node_modules/x': module, '.env': env, ...covered } = lost.before
    expect([big, module, env]).not.toContain(undefined)
    expect(Object.keys(covered).sort()).toEqual(['.gitignore', 'dev.local', 'kept', 'out.gen'])
    // Its folder is not listed: it is there, and what was in it is not.
    expect(lost.after).toEqual({ ...covered, 'cache/': 'empty' })
    expect(lost.output).toBe(' M .gitignore\n')
    const recoveries = lost.since.filter((event) => event.type === 'recovery')
    expect(recoveries).toHaveLength(1)
    expect(recoveries[0]!.missing.toSorted((left, right) => (left.path < right.path ? -1 : 1))).toEqual([
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
