import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { Isolation } from '@tutti/proto'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { killAll, sandboxesOf } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)('a submodule that a lost sandbox had', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let remotes: string
  let repository: TestRepository
  let commits: string[]

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath! })
    await stack.start()
    client = connect(stack)
  })
  afterAll(() => stack.remove())

  beforeEach(() => {
    remotes = mkdtempSync(join(tmpdir(), 'tutti-remotes-'))
    const who = [
      '-c',
      'user.name=Test',
      '-c',
      'user.email=test@localhost',
      '-c',
      'protocol.file.allow=always',
    ]
    const git = (...args: readonly string[]) =>
      execFileSync('git', [...who, ...args], { cwd: remotes, encoding: 'utf8' }).trim()
    git('init', '-q', '-b', 'main', 'm')
    commits = ['one', 'two'].map((text) => {
      execFileSync('sh', ['-c', `echo ${text} > readme.md`], { cwd: join(remotes, 'm') })
      git('-C', 'm', 'add', '-A')
      git('-C', 'm', 'commit', '-qm', text)
      return git('-C', 'm', 'rev-parse', 'HEAD')
    })
    repository = createTestRepository({ kept: 'k' })
    const here = (...args: readonly string[]) => repository.git(...who, ...args)
    here('submodule', '--quiet', 'add', join(remotes, 'm'), 'libs/m')
    here('-C', 'libs/m', 'checkout', '-q', commits[0]!)
    here('add', '-A')
    here('commit', '-qm', 'with a submodule')
  })
  afterEach(() => {
    repository.remove()
    rmSync(remotes, { recursive: true, force: true })
  })

  const status = 'git submodule status; cat libs/m/readme.md; git status --porcelain'
  const lose = async (before: () => void) => {
    const agent = await startAgent(client, {
      prompt: script(
        `run: git -c protocol.file.allow=always submodule --quiet update --init; git -C libs/m checkout -q ${commits[1]}; echo dirty >> libs/m/readme.md; ${status}`,
      ),
      repository: repository.path,
      agent: 'embedded:scripted',
      options: { sandbox: { isolation: Isolation.BUBBLEWRAP, mounts: [remotes] } },
    })
    expect((await agent.rest()).state?.reason).toBe('completed')
    const first = await agent.events()
    before()
    killAll(sandboxesOf(stack).flat())
    await agent.followUp(script(`run: ${status}`))
    expect((await agent.rest()).state?.reason).toBe('completed')
    const since = (await agent.events()).slice(first.length)
    const recoveries = since.filter((event) => event.type === 'recovery')
    expect(recoveries).toHaveLength(1)
    return { agent, before: shellOutput(first), after: shellOutput(since), missing: recoveries[0]!.missing }
  }

  test('REC-21 submodule moved and dirty: it is as it was', async () => {
    const { agent, before, after, missing } = await lose(() => {})
    expect(before).toContain(`+${commits[1]} libs/m`)
    expect(before).toContain('two\ndirty\n')
    expect(after).toBe(before)
    expect(missing).toEqual([])
    // What is in a submodule is not the repository's.
    await expect(client.agents.deliverAgent({ bcId: agent.bcId })).resolves.toMatchObject({
      reason: 'nothing_to_deliver',
    })
  })

  test('REC-21 with the remote unreachable: what was changed is there, and one warning names it', async () => {
    const { after, missing } = await lose(() => renameSync(join(remotes, 'm'), join(remotes, 'gone')))
    expect(after).toContain(`-${commits[0]} libs/m`)
    expect(after).toContain('two\ndirty\n')
    expect(missing).toEqual([{ path: 'libs/m', reason: 'submodule' }])
  })
})
