import type { TuttiClient } from '@tutti/client'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { ensembleEvents } from './ensemble-events.ts'
import type { RunJson } from './run-json.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

/** Every object that the sandbox can reach: what is mounted, by a repository of its own, and what its clone has. */
const listObjects = [
  'git init -q --bare "$HOME/all" && echo /mirror > "$HOME/all/objects/info/alternates"',
  'echo ATTACK-BEGIN; git -C "$HOME/all" cat-file --batch-all-objects --batch | tr -d "\\000" | grep -a -e "^secret" -e "^source"',
  'git cat-file --batch-all-objects --batch | tr -d "\\000" | grep -a -e "^secret" -e "^own" -e "^source"; echo ATTACK-END',
].join('; ')

/** The lines that the newest attack found. */
function foundIn(output: string): readonly string[] {
  const runs = [...output.matchAll(/^ATTACK-BEGIN\n(.*?)^ATTACK-END$/gms)]
  return [...new Set(runs.at(-1)![1]!.split('\n').filter(Boolean))].toSorted()
}

describe.skipIf(!temporalPath)('SEC-12 the work of other agents', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let writer: AgentDriver

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ 'README.md': 'source of all\n' })
    writer = await start('write: kept.txt secret of the writer')
    expect((await writer.rest()).state?.reason).toBe('completed')
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  const start = (...lines: readonly string[]) =>
    startAgent(client, {
      prompt: script(...lines),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
  const outputOf = async (agent: AgentDriver): Promise<string> => shellOutput(await agent.events())
  const found = async (agent: AgentDriver) => foundIn(await outputOf(agent))

  test('SEC-12 an agent finds nothing of another agent among the objects that it can read', async () => {
    const reader = await start(`run: ${listObjects}`)
    await reader.rest()
    expect(await found(reader)).toEqual(['source of all'])
  })

  test('SEC-12 nor does one that is hydrated at its own checkpoint, which has its own work', async () => {
    const { bcId } = writer
    const reader = await start('write: mine.txt own work')
    await reader.rest()
    await client.composers.archiveBackgroundComposer({ bcId: reader.bcId })
    await client.composers.resumeBackgroundComposer({ bcId: reader.bcId })
    await reader.followUp(script(`run: cat mine.txt; git log --format=%s; ${listObjects}`))
    const rest = await reader.rest()
    expect(rest.state?.incarnation).toBe(2)
    expect(await found(reader)).toEqual(['own work', 'source of all'])
    // Our checkpoint is none of its commits.
    expect(await outputOf(reader)).toContain('own work\nstart\n')

    await client.composers.archiveBackgroundComposer({ bcId })
    await client.composers.resumeBackgroundComposer({ bcId })
    await writer.followUp('run: test "$(cat kept.txt)" = "secret of the writer"')
    expect((await writer.rest()).state?.reason).toBe('completed')
  })

  test('SEC-12 a verification has the combined tree, and nothing of an earlier synthesis or of other agents', async () => {
    for (const name of ['first', 'second']) {
      const result = await stack.json<RunJson>(
        [
          'run',
          'do it',
          '--repo',
          repository.path,
          '--strategy',
          'merge',
          // It fails, so that nothing is delivered: what is in the source is for all.
          '--check',
          `${listObjects}; cat one.txt two.txt; false`,
          ...['one', 'two'].flatMap((file) => [
            '--agent',
            `command:sh -c 'echo secret of ${name} ${file} > ${file}.txt'`,
          ]),
        ],
        [3],
      )
      expect(result.reason).toBe('check_failed')
      const events = await ensembleEvents(stack, result.ensemble_id)
      const tails = events.flatMap((event) =>
        event.type === 'verified' ? [(event['result'] as { tail: string }).tail] : [],
      )
      expect(tails.length).toBeGreaterThan(0)
      const both = [`secret of ${name} one`, `secret of ${name} two`]
      expect(tails.some((tail) => tail.endsWith(`ATTACK-END\n${both.join('\n')}`))).toBe(true)
      for (const tail of tails) {
        const lines = foundIn(tail)
        expect(lines).toContain('source of all')
        expect([...both, 'source of all']).toEqual(expect.arrayContaining([...lines]))
      }
    }
  })
})
