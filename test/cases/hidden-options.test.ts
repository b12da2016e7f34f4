import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import type { TuttiClient } from '@tutti/client'
import { TuttiError } from '@tutti/core'
import { PullRequestMode, RepositorySourceSchema } from '@tutti/proto'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'

const temporalPath = inject('temporalServer')
const scratch = mkdtempSync(join(tmpdir(), 'tutti-options-'))
const canary = join(scratch, 'canary')

const hostile = [
  `--upload-pack=touch ${canary}`,
  `--output=${canary}`,
  `-o ${canary}`,
  '--exec=x',
  `$(touch ${canary})`,
  `\`touch ${canary}\``,
  `;touch ${canary}`,
  `x|touch ${canary}`,
  `a\ntouch ${canary}`,
  'evil\u202egpj.exe',
  'a\u0000b',
  'refs/../x',
  '@{-1}',
  'main~1^{tree}',
  'x'.repeat(300),
]
/** One of each kind: each is a process of its own. A program cannot be given a NUL byte in an argument. */
const forArguments = hostile.filter((text) => !text.includes('\0')).filter((_, index) => index % 2 === 0)

describe.skipIf(!temporalPath)('SEC-11 options hidden in names', { timeout: 240_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let agent: AgentDriver
  const gitLog = join(scratch, 'git.log')

  beforeAll(async () => {
    // Writes down every git command that the product starts.
    const git = execFileSync('which', ['git'], { encoding: 'utf8' }).trim()
    const folder = join(scratch, 'bin')
    execFileSync('mkdir', [folder])
    writeFileSync(join(folder, 'git'), `#!/bin/sh\nprintf '%s\\0' "$@" >> '${gitLog}'\nexec '${git}' "$@"\n`)
    chmodSync(join(folder, 'git'), 0o755)
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_MAX_SANDBOXES: '4', PATH: `${folder}:${process.env['PATH']}` },
    })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ 'README.md': 'hello\n' })
    agent = await startAgent(client, {
      prompt: 'write: made.txt 1',
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.rest()
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
    rmSync(scratch, { recursive: true, force: true })
  })

  const gitWords = () => readFileSync(gitLog, 'utf8').split('\0')
  const codeOf = async (call: Promise<unknown>): Promise<string> => {
    try {
      await call
      return 'accepted'
    } catch (error) {
      return TuttiError.from(error).code
    }
  }
  /** Nothing was run, and no git command was given what was sent. */
  function expectInert(sent: string): void {
    expect(existsSync(canary), JSON.stringify(sent)).toBe(false)
    expect(gitWords().filter((word) => word.includes(sent.slice(0, 60)))).toEqual([])
  }

  test('the recorder sees what the product starts', () => {
    expect(gitWords()).toContain('rev-parse')
  })

  test('SEC-11 create, over the API: ref, repository, snapshot', async () => {
    const source = (await agent.get()).repository!.location
    for (const text of hostile) {
      const asRef = create(RepositorySourceSchema, {
        location: source as { case: 'registered'; value: string },
        ref: text,
      })
      expect(await codeOf(client.agents.createAgent({ prompt: 'x', repository: asRef })), text).toBe(
        'invalid_argument',
      )
      for (const location of ['registered', 'url'] as const) {
        const asLocation = create(RepositorySourceSchema, { location: { case: location, value: text } })
        expect(['invalid_argument', 'not_found'], text).toContain(
          await codeOf(client.agents.createAgent({ prompt: 'x', repository: asLocation })),
        )
      }
      expectInert(text)
    }
  })

  test('SEC-11 deliver and diff, over the API: branch, base, id, pull request', async () => {
    const branches = repository.git('branch', '--list')
    const { bcId } = agent
    for (const text of hostile) {
      expect(await codeOf(client.agents.deliverAgent({ bcId, branch: text })), text).toBe('invalid_argument')
      expect(await codeOf(client.agents.deliverAgent({ bcId, base: text })), text).toBe('invalid_argument')
      const diff = Array.fromAsync(client.agents.diffAgent({ bcId: text }))
      expect(await codeOf(diff), text).toBe('invalid_argument')
      const pull = Array.fromAsync(client.pullRequests.diffPullRequest({ key: { url: text } }))
      expect(['invalid_argument', 'not_found'], text).toContain(await codeOf(pull))
      expectInert(text)
    }
    expect(repository.git('branch', '--list')).toBe(branches)
  })

  test('SEC-11 create, deliver and diff, from the command line', async () => {
    const { bcId } = agent
    const calls = forArguments.flatMap((text) => [
      ['agent', 'create', 'x', '--repo', repository.path, `--ref=${text}`],
      ['agent', 'deliver', bcId, `--branch=${text}`],
      ['agent', 'diff', text],
      ['repo', 'add', join(scratch, text)],
    ])
    const pending = calls.values()
    const lane = async () => {
      for (const args of pending) {
        const { code, stdout, stderr } = await stack.run(args)
        expect([3, 4, 5, 64, 65, 66], `${args.join(' ')}: ${stderr}`).toContain(code)
        // oxlint-disable-next-line no-control-regex -- these are what must not come through
        expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/)
      }
    }
    await Promise.all([lane(), lane()])
    for (const text of forArguments) expectInert(text)
  })

  test('SEC-11 a title is a plain text, whatever it looks like', async () => {
    const { bcId } = agent
    for (const title of hostile.filter((text) => /^[\x20-\x7e]{1,250}$/.test(text))) {
      const { pullRequest } = await client.agents.deliverAgent({ bcId, title, mode: PullRequestMode.READY })
      expect(pullRequest!.title).toBe(title)
      expect(pullRequest!.number).toBe(1n)
      expectInert(title)
    }
    const refused = hostile.filter((text) => !/^[\x20-\x7e]{1,250}$/.test(text))
    for (const title of refused)
      expect(await codeOf(client.agents.deliverAgent({ bcId, title }))).toBe('invalid_argument')
  })
})
