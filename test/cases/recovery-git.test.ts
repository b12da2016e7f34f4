import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent, type Logged } from './agent-driver.ts'
import { connect } from './connect.ts'
import { listAfterLoss, loseSandbox, type LostSandbox } from './recovery-driver.ts'
import { killAll, sandboxesOf } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

/** What git says of the repository in all that is kept. */
const inspect =
  '{ git rev-parse HEAD; git symbolic-ref -q HEAD || echo detached; git for-each-ref; git stash list; git log --format="%H %s"; git ls-files -s; git status --porcelain=v2; }'

const recoveries = (events: readonly Logged[]) => events.filter((event) => event.type === 'recovery')

describe.skipIf(!temporalPath)('the git repository that a lost sandbox leaves', { timeout: 120_000 }, () => {
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
  const start = (repository: TestRepository, ...lines: readonly string[]) =>
    startAgent(client, {
      prompt: script(...lines),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
  const lose = async (files: Readonly<Record<string, string>>, work: string): Promise<LostSandbox> => {
    const lost = await loseSandbox(stack, client, repositoryOf(files), `${work}\n${inspect}`, inspect)
    expect(lost.output).toBe(lost.said)
    expect(lost.after).toEqual(lost.before)
    expect(recoveries(lost.since)).toMatchObject([
      { incarnation: 2, reason: 'lost', index: 'restored', proven: true, missing: [] },
    ])
    return lost
  }
  const files = { '.gitattributes': '*.txt text\n', f1: '1\n', f2: '2\n', 'g.txt': 'g\n' }

  test('REC-10 an amended commit', async () => {
    const lost = await lose(
      files,
      'echo a >> f1; git commit -qam C2; echo b >> f1; git commit -qa --amend -m C2b; echo dirty >> f2',
    )
    expect(lost.output).toContain('refs/heads/tutti/bc-')
    expect(lost.output).toMatch(/[0-9a-f]{40} C2b\n/)
    expect(lost.output).not.toMatch(/ C2\n/)
    expect(lost.output).toMatch(/^1 \.M N\.\.\. .* f2$/m)
  })

  test('REC-10 three commits squashed into one by a rebase', async () => {
    const lost = await lose(
      files,
      [
        'for i in 1 2 3; do echo $i >> f1; git commit -qam c$i; done',
        'GIT_SEQUENCE_EDITOR="sed -i 2,3s/pick/fixup/" git rebase -qi HEAD~3; echo dirty >> f2',
      ].join('\n'),
    )
    expect(lost.output.match(/^[0-9a-f]{40} .*$/gm)).toHaveLength(3)
    expect(lost.output).toMatch(/^1 \.M N\.\.\. .* f2$/m)
  })

  test('REC-11 a detached HEAD', async () => {
    const lost = await lose(
      files,
      [
        'git checkout -qb work; echo 2 >> f1; git commit -qam C2',
        'git checkout -q --detach HEAD~1; echo d >> f2; git commit -qam D1; echo dirty >> g.txt',
      ].join('\n'),
    )
    expect(lost.output).toMatch(/^detached$/m)
    expect(lost.output).toMatch(/^[0-9a-f]{40} D1$/m)
    expect(lost.output).toMatch(/refs\/heads\/work$/m)
    expect(lost.output).toMatch(/^1 \.M N\.\.\. .* g\.txt$/m)
  })

  test('REC-12 a commit that exists only in the sandbox outlives it from the event on', async () => {
    const repository = repositoryOf(files)
    const refs = repository.git('for-each-ref')
    const agent = await start(
      repository,
      'run: [ -e n1 ] || { for i in $(seq 30); do echo $i > n$i; done; git add -A; git commit -qm C2; sleep 600; }',
      'run: git rev-parse HEAD; git fsck --full --no-dangling; cat $(seq -f n%.0f 30); git status --porcelain',
    )
    const commit = await agent.waitFor((event) => event.type === 'git_commit')
    killAll(sandboxesOf(stack).flat())
    expect((await agent.rest()).state?.reason).toBe('completed')
    const events = await agent.events()
    const since = events.slice(events.findIndex(({ type }) => type === 'recovery'))
    const numbers = Array.from({ length: 30 }, (_, index) => `${index + 1}\n`).join('')
    const { sha } = commit as Extract<Logged, { type: 'git_commit' }>
    expect(shellOutput(since)).toBe(`${sha}\n${numbers}`)
    expect(repository.git('for-each-ref')).toBe(refs)
  })

  test('REC-17 the recovery of a recovered sandbox', async () => {
    const agent = await start(
      repositoryOf({ ...files, old: 'old\n' }),
      'run: for i in 1 2 3 4; do echo $i > n$i; done; git add n1; git commit -qm C2',
    )
    await agent.rest()
    const first = await listAfterLoss(stack, agent)
    expect(Object.keys(first)).toEqual(['.gitattributes', 'f1', 'f2', 'g.txt', 'n1', 'n2', 'n3', 'n4', 'old'])
    const work =
      'for i in 1 2 3; do echo more >> n$i; done; rm old n4; git add n1 n2; git commit -qm C3; echo 3 >> f1; echo 3 >> n3'
    await agent.followUp(script(`run: ${work}; ${inspect}`))
    await agent.rest()
    const before = shellOutput(await agent.events())
      .split('}')
      .at(-1)!
    const listed = await listAfterLoss(stack, agent)
    expect(Object.keys(listed)).toEqual(['.gitattributes', 'f1', 'f2', 'g.txt', 'n1', 'n2', 'n3'])
    await agent.followUp(script(`run: ${inspect}`))
    await agent.rest()
    const events = await agent.events()
    expect(before).toContain(
      shellOutput(events.slice(events.findLastIndex(({ type }) => type === 'turn_started'))),
    )
    expect(
      events.flatMap((event) =>
        event.type === 'sandbox' && event.state === 'ready' ? [event.incarnation] : [],
      ),
    ).toEqual([1, 2, 3])
    expect(recoveries(events)).toMatchObject([
      { incarnation: 2, proven: true },
      { incarnation: 3, proven: true, replayed: 0 },
    ])
  })

  test('REC-20 a sandbox that dies during git add', async () => {
    const agent = await start(
      repositoryOf(files),
      'run: [ -e n1 ] || { for i in $(seq 2000); do echo $i > n$i; done; echo "n7 filter=slow" > .git/info/attributes; git config filter.slow.clean "echo adding >&2; sleep 600"; git add -A; }',
      'run: find .git -name "*.lock"; git config --unset filter.slow.clean; git status --porcelain | wc -l; git add -A; git commit -qm all; git log --format=%s -1; cat n1 n2000',
    )
    await agent.waitFor((event) => JSON.stringify(event).includes('adding'))
    await agent.waitFor((event) => event.type === 'workspace_captured' && event.entries > 2000)
    killAll(sandboxesOf(stack).flat())
    expect((await agent.rest()).state?.reason).toBe('completed')
    const events = await agent.events()
    const since = events.slice(events.findIndex(({ type }) => type === 'recovery'))
    expect(shellOutput(since)).toBe('2000\nall\n1\n2000\n')
    expect(recoveries(events)).toMatchObject([{ proven: true, reason: 'lost' }])
  })

  test('REC-20 an index that the agent has overwritten', async () => {
    const lost = await loseSandbox(
      stack,
      client,
      repositoryOf(files),
      'echo 2 >> f1; git commit -qam C2; echo dirty >> f2; head -c 100 /dev/urandom > .git/index',
      'git status --porcelain; find .git -name "*.lock"; git commit -qam C3; git log --format=%s -2',
    )
    expect(lost.output).toBe(' M f2\nC3\nC2\n')
    expect(lost.after).toEqual(lost.before)
    expect(recoveries(lost.since)).toMatchObject([
      { index: 'rebuilt', missing: [{ path: '.git/index', reason: 'unreadable' }] },
    ])
  })
})
