import { createHash } from 'node:crypto'
import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')
const hashOf = (text: string) => `sha256_${createHash('sha256').update(text).digest('hex')}`

describe.skipIf(!temporalPath)('what a capture finds', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  const repositories: TestRepository[] = []

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath! })
    await stack.start()
    client = connect(stack)
  })
  afterEach(() => {
    for (const repository of repositories.splice(0)) repository.remove()
  })
  afterAll(() => stack.remove())

  const start = (files: Readonly<Record<string, string>>, ...lines: readonly string[]) => {
    const repository = createTestRepository(files)
    repositories.push(repository)
    return startAgent(client, {
      prompt: script(...lines),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
  }

  test('SBX-01 a burst of files in brand-new directories is in the log before the call that made it ends, within 10 s', async () => {
    const make = `const fs = require("fs"), from = Date.now(); for (let at = 0; at < 10000; at += 1) { const folder = ["d" + at, "x", "y"].join("/"); fs.mkdirSync(folder, { recursive: true }); fs.writeFileSync(folder + "/f", String(at).padStart(1024, "0")) } console.log("made in " + (Date.now() - from))`
    const agent = await start({ kept: 'k' }, `run: node -e '${make}'`)
    await agent.waitFor(
      (event) => event.type === 'shell_output_delta' && JSON.stringify(event).includes('made in'),
    )
    const madeAt = Date.now()
    await agent.waitFor((event) => event.type === 'tool_call_completed')
    expect(Date.now() - madeAt).toBeLessThan(10_000)
    await agent.rest()
    const events = await agent.events()
    // Or it is no burst.
    expect(Number(/made in (\d+)/.exec(shellOutput(events))![1])).toBeLessThan(5000)

    const files = events.filter((event) => event.type === 'file_change')
    expect(new Set(files.map(({ path }) => path)).size).toBe(10_000)
    expect(files).toHaveLength(10_000)
    for (const file of files) {
      const [, at = ''] = /^d(\d+)\/x\/y\/f$/.exec(file.path) ?? []
      expect(file).toMatchObject({ action: 'created', size: 1024, hash: hashOf(at.padStart(1024, '0')) })
    }
    const completed = events.findIndex((event) => event.type === 'tool_call_completed')
    expect(events.findLastIndex((event) => event.type === 'file_change')).toBeLessThan(completed)
  })

  test('SBX-02 changes made behind the tools', async () => {
    const files = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`f${at}`, `old ${at}\n`]))
    const agent = await start(
      { ...files, formatted: 'a  b\n' },
      'run: sed -i s/old/new/ f*; touch -r formatted stamp; printf "a b \\n" > formatted; touch -r stamp formatted; rm stamp; (sleep 10; echo late > late) > /dev/null 2>&1 &',
    )
    await agent.waitFor((event) => event.type === 'tool_call_completed')
    const returnedAt = Date.now()
    await agent.waitFor((event) => event.type === 'turn_ended')
    await agent.seen((event) => event.type === 'file_change' && event.path === 'late')
    expect(Date.now() - returnedAt).toBeLessThan(15_000)
    const changed = new Map(
      (await agent.events()).flatMap((event) =>
        event.type === 'file_change' ? [[event.path, event.hash]] : [],
      ),
    )
    expect(Object.fromEntries(changed)).toEqual({
      ...Object.fromEntries(Object.keys(files).map((name, at) => [name, hashOf(`new ${at}\n`)])),
      formatted: hashOf('a b \n'),
      late: hashOf('late\n'),
    })
  })
})
