import { existsSync, renameSync } from 'node:fs'
import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { driveAgent, startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'

const temporalPath = inject('temporalServer')

/** What `tutti agent deliver -o json` prints, as far as it is looked at here. */
interface DeliverJson {
  readonly branch: string
  readonly commit: string
  readonly reason: string
  readonly pull_request: {
    readonly number: number
    readonly url: string
    readonly state: string
    readonly title: string
  } | null
}

describe.skipIf(!temporalPath)('delivering one agent', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    await stack.start()
    client = connect(stack)
  })
  afterEach(() => repository.remove())
  afterAll(() => stack.remove())

  const agentThat = async (...prompt: readonly string[]) => {
    repository = createTestRepository({ 'README.md': 'hello\n' })
    const agent = await startAgent(client, {
      prompt: prompt.join('\n'),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.rest()
    return agent
  }
  const deliver = (bcId: string, codes?: readonly number[]) =>
    stack.json<DeliverJson>(['agent', 'deliver', bcId], codes)
  const pullRequests = async (name: string) =>
    (await client.pullRequests.listPullRequests({ pageSize: 100 })).pullRequests.filter(
      (pull) => pull.repository === name,
    )

  test('DEL-01 an agent without a change has nothing to deliver: exit code 8, no branch, no pull request', async () => {
    const agent = await agentThat('run: echo x > x.txt; rm x.txt', 'say: nothing to do')
    const branches = repository.git('branch', '--list')
    const made = await client.composers.makePRBackgroundComposer({ bcId: agent.bcId })
    expect(made).toMatchObject({ hasCommits: false, prUrl: '', branchName: '' })

    const text = await stack.run(['agent', 'deliver', agent.bcId])
    expect(text.code).toBe(8)
    expect(text.stdout).toBe('')
    expect(text.stderr).toContain('nothing to deliver')
    expect(await deliver(agent.bcId, [8])).toMatchObject({
      reason: 'nothing_to_deliver',
      branch: '',
      pull_request: null,
    })
    expect(repository.git('branch', '--list')).toBe(branches)
    const { repository: source } = await agent.get()
    expect(await pullRequests(String(source!.location.value))).toEqual([])
    expect(await agent.state()).toBe('IDLE')
  })

  test('DEL-02 delivered three times, twice at once, after a follow-up: one pull request with the newest head', async () => {
    const agent = await agentThat('write: one.txt 1')
    const first = await deliver(agent.bcId)
    expect(first.pull_request).toMatchObject({ number: 1, state: 'OPEN', base: 'main' })
    expect(repository.git('rev-parse', first.branch).trim()).toBe(first.commit)

    await agent.followUp('write: two.txt 2')
    await agent.rest()
    const again = [
      ...(await Promise.all([deliver(agent.bcId), deliver(agent.bcId)])),
      await deliver(agent.bcId),
    ]
    for (const answer of again) {
      expect(answer.branch).toBe(first.branch)
      expect(answer.pull_request).toMatchObject({ number: 1, url: first.pull_request!.url })
      expect(answer.commit).toBe(again[0]!.commit)
    }
    expect(again[0]!.commit).not.toBe(first.commit)
    const { repository: source } = await agent.get()
    const pulls = await pullRequests(String(source!.location.value))
    expect(pulls).toHaveLength(1)
    expect(pulls[0]).toMatchObject({ headCommit: again[0]!.commit, branch: first.branch })
    expect(pulls[0]!.body.match(new RegExp(agent.bcId, 'g'))).toHaveLength(1)
    expect(repository.git('rev-parse', first.branch).trim()).toBe(again[0]!.commit)
    expect(repository.tree(first.branch)).toEqual({
      'README.md': '100644 hello\n',
      'one.txt': '100644 1\n',
      'two.txt': '100644 2\n',
    })
    expect(repository.git('branch', '--list', 'tutti/*').trim().split('\n')).toHaveLength(1)
  })

  test('a second branch gets a pull request of its own; each keeps its title and moves along', async () => {
    const agent = await agentThat('write: one.txt 1')
    const to = (branch: string, ...flags: readonly string[]) =>
      stack.json<DeliverJson>(['agent', 'deliver', agent.bcId, '--branch', branch, ...flags])
    const one = await to('docs/one', '--title', 'The first title')
    await agent.followUp('write: two.txt 2')
    await agent.rest()
    const two = await to('docs/two')
    expect(two.branch).toBe('docs/two')
    expect(two.pull_request!.number).not.toBe(one.pull_request!.number)
    const again = await to('docs/one')
    expect(again.pull_request).toMatchObject({
      number: one.pull_request!.number,
      title: 'The first title',
    })
    expect(again.commit).not.toBe(one.commit)
    const heads = repository.git('rev-parse', 'docs/one', 'docs/two').trim().split('\n')
    expect(heads).toEqual([again.commit, again.commit])
  })

  test.each([
    ['a base that is not there', ['--base', 'nope'], 'no branch "nope"'],
    ['the checked-out branch', ['--branch', 'main'], 'is checked out'],
  ])('%s is refused by name: exit code 9, no pull request', async (_what, flags, reason) => {
    const agent = await agentThat('write: one.txt 1')
    const branches = repository.git('for-each-ref')
    const answer = await stack.run(['agent', 'deliver', agent.bcId, ...flags])
    expect([answer.code, answer.stdout]).toEqual([9, ''])
    expect(answer.stderr).toContain(reason)
    expect(answer.stderr).toContain('The work is kept')
    expect(repository.git('for-each-ref')).toBe(branches)
    const { repository: source } = await agent.get()
    expect(await pullRequests(String(source!.location.value))).toEqual([])
  })

  test('a base branch that was made after the agent began is one', async () => {
    const agent = await agentThat('write: one.txt 1')
    repository.git('branch', 'release')
    const answer = await stack.json<DeliverJson>(['agent', 'deliver', agent.bcId, '--base', 'release'])
    expect(answer.pull_request).toMatchObject({ base: 'release' })
  })

  test('a target that is gone: the result says so and where the work is', async () => {
    repository = createTestRepository({ 'README.md': 'hello\n' })
    const { repository: added } = await client.repositories.addRepository({ path: repository.path })
    const { ensembleId, bcIds } = await client.composers.startParallelAgentWorkflow({
      spec: {
        prompt: 'ask: go?\nwrite: one.txt 1',
        repository: { location: { case: 'registered', value: added!.name } },
        count: 1,
        agents: [{ spec: 'embedded:scripted' }],
      },
    })
    await driveAgent(client, bcIds[0]!).waitFor((event) => event.type === 'agent_question')
    const away = `${repository.path}-away`
    renameSync(repository.path, away)
    try {
      await client.agents.answerQuestion({ bcId: bcIds[0]!, answer: 'yes' })
      for await (const _ of client.ensembles.streamEnsembleEvents({ ensembleId, follow: true }));
      const { ensemble } = await client.ensembles.getEnsemble({ ensembleId })
      expect(ensemble).toMatchObject({ reason: 'delivery_failed', deliveryFailure: 'forge_unavailable' })
      const { commit } = ensemble!.synthesis!
      expect(ensemble!.deliveryDetail).toMatch(/does not appear to be a git repository|could not be reached/)
      const [, fetched = ''] = /`git (fetch [^`]+)`/.exec(ensemble!.deliveryDetail) ?? []
      const text = await stack.run(['ensemble', 'get', ensembleId])
      expect(text.stdout).toContain(fetched)
      const single = await stack.run(['agent', 'deliver', bcIds[0]!])
      expect(single.code).toBe(9)
      expect(single.stderr).toContain('could not be reached')
      renameSync(away, repository.path)
      repository.git(...fetched.split(' '))
      expect(repository.git('rev-parse', 'FETCH_HEAD').trim()).toBe(commit)
    } finally {
      if (existsSync(away)) renameSync(away, repository.path)
    }
  })
})
