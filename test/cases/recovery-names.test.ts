import { createHash } from 'node:crypto'
import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { list, listingIn, loseSandbox, type Listing } from './recovery-driver.ts'
import { killSandbox } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

/** The bytes of each name, and how a person sees it. */
const names: readonly (readonly [Buffer, string])[] = [
  [Buffer.from('caf\u00e9'), 'caf\u00e9'],
  [Buffer.from('cafe\u0301'), String.raw`"cafe\u{301}"`],
  [Buffer.from('Readme.md'), 'Readme.md'],
  [Buffer.from('README.md'), 'README.md'],
  [Buffer.from('trailing '), String.raw`"trailing\u{20}"`],
  [Buffer.from('-rf'), '-rf'],
  [Buffer.from('a\nb'), String.raw`"a\nb"`],
  [Buffer.from(`it's "quoted"`), String.raw`"it's \"quoted\""`],
  [Buffer.from('🎼'), '🎼'],
  [Buffer.from([0x66, 0xff, 0x66]), String.raw`"f\xfff"`],
  [Buffer.from('n'.repeat(255)), 'n'.repeat(255)],
]
const contentOf = (index: number) => `content ${index}\n`
const files = names.map(([name], index) => [name.toString('base64'), contentOf(index)] as const)
const write = `node -e 'for (const [name, content] of ${JSON.stringify(files)}) require("fs").writeFileSync(Buffer.from(name, "base64"), content)'`

const expected: Listing = {
  x: `644 ${createHash('sha256').update('x').digest('hex')}`,
  ...Object.fromEntries(
    names.map(([name], index) => [
      name.toString('latin1'),
      `644 ${createHash('sha256').update(contentOf(index)).digest('hex')}`,
    ]),
  ),
}

describe.skipIf(!temporalPath)('names of files after the loss of a sandbox', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ x: 'x' })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  /** What a person reads of each of the eleven files. */
  async function expectShown(agent: AgentDriver): Promise<void> {
    const shown = names.map(([, text]) => text)
    const events = (await stack.run(['agent', 'events', agent.bcId])).stdout.split('\n')
    const created = events.flatMap((line) => /^\S+ {2}file +created {2}(.*)$/.exec(line)?.[1] ?? [])
    expect(created.toSorted()).toEqual(shown.toSorted())

    const diff = (await stack.run(['agent', 'diff', agent.bcId])).stdout.split('\n')
    const prefixed = shown.map((text) => (text.startsWith('"') ? `"b/${text.slice(1)}` : `b/${text}`))
    const added = diff.flatMap((line) => /^\+\+\+ (.*)$/.exec(line)?.[1] ?? [])
    expect(added.toSorted()).toEqual(prefixed.toSorted())
    const heads = diff.filter((line) => line.startsWith('diff --git '))
    expect(heads.toSorted()).toEqual(
      prefixed.map((text) => `diff --git ${text.replace('b/', 'a/')} ${text}`).toSorted(),
    )

    // Whatever a terminal or an eye makes of Unicode forms, spaces and bytes that are none.
    const seen = shown.map((text) => text.normalize('NFC').trim())
    expect(new Set(seen).size).toBe(names.length)
    expect(seen.join('')).not.toMatch(/\ufffd|\n|\u0301/)
  }

  test('REC-08 names are bytes: a sandbox lost at rest', async () => {
    const lost = await loseSandbox(stack, client, repository, write)
    expect(lost.before).toEqual(expected)
    expect(lost.after).toEqual(expected)
    expect(lost.since.filter((event) => event.type === 'file_change')).toEqual([])
    await expectShown(lost.agent)
  })

  test('REC-08 names are bytes: a sandbox lost in the middle of a turn', async () => {
    const agent = await startAgent(client, {
      prompt: script('run: <<EOF', write, 'EOF', 'run: echo here; sleep 941'),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.waitFor(
      (event) => event.type === 'shell_output_delta' && JSON.stringify(event).includes('here'),
    )
    killSandbox(stack, 'sleep 941')
    await agent.waitFor(
      (event) => event.type === 'sandbox' && event.state === 'ready' && event.incarnation === 2,
    )
    await client.agents.stopAgent({ bcId: agent.bcId })
    await agent.rest()
    await agent.followUp(script('run: <<EOF', list, 'EOF'))
    expect((await agent.rest()).state?.reason).toBe('completed')
    expect(listingIn(await agent.events())).toEqual(expected)
    await expectShown(agent)
  })
})
