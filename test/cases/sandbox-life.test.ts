import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { startAgent, type AgentDriver, type Logged } from './agent-driver.ts'
import { connect } from './connect.ts'
import { nothingLeft } from './nothing-left.ts'
import { killAll, sandboxesOf } from './sandboxes.ts'

const temporalPath = inject('temporalServer')

/** The times of the case, ten times as fast: a file every tenth of a second, 200 of them, from where it was. */
const agentSpec =
  "command:sh -c 'i=$(ls n* 2>/dev/null | wc -l); while [ $i -lt 200 ]; do i=$((i+1)); echo $i > n$i; sleep 0.1; done'"
const files = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`n${at + 1}`, `100644 ${at + 1}\n`]))

describe.skipIf(!temporalPath)('SBX-05 a sandbox ends in the middle of a turn', { timeout: 120_000 }, () => {
  let stack: TuttiStack
  let repository: TestRepository
  beforeEach(() => {
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterEach(async () => {
    await stack.remove()
    repository.remove()
  })
  async function begin(env: Readonly<Record<string, string>>): Promise<AgentDriver> {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env })
    await stack.start()
    return startAgent(connect(stack), { prompt: 'write them', repository: repository.path, agent: agentSpec })
  }
  async function expectAllOnce(agent: AgentDriver, events: readonly Logged[]): Promise<void> {
    expect(all(events, 'user_message')).toHaveLength(1)
    expect(all(events, 'turn_ended')).toMatchObject([{ reason: 'completed' }])
    const { branch } = await connect(stack).agents.deliverAgent({ bcId: agent.bcId })
    expect(repository.tree(branch)).toEqual({ 'README.md': '100644 hello\n', ...files })
    await connect(stack).composers.archiveBackgroundComposer({ bcId: agent.bcId })
    await nothingLeft(stack, 30_000)
  }

  test('SBX-05 announced: the work moves before it, the reason is told, the prompt is not posted again, and all files are there', async () => {
    const agent = await begin({ TUTTI_SANDBOX_MAX_LIFE: '12s', TUTTI_SANDBOX_END_MARGIN: '4s' })
    await agent.rest()
    const events = await agent.events()
    const lives = all(events, 'sandbox').filter(({ state }) => state === 'ready')
    expect(lives.length).toBeGreaterThan(1)
    for (const { expiresAt } of lives) expect(expiresAt).toBeTypeOf('number')
    // Of each but the last: it was left for its end, not lost by it, with all that was in it.
    const moves = lives.slice(1)
    expect(all(events, 'turn_interrupted')).toMatchObject(moves.map(() => ({ reason: 'expires' })))
    expect(all(events, 'recovery')).toMatchObject(
      moves.map(() => ({ reason: 'expires', proven: true, missing: [] })),
    )
    await expectAllOnce(agent, events)
  })

  test('SBX-05 without notice: no more than the files of the last 5 s were missing, and the recovery says since when', async () => {
    const agent = await begin({})
    await agent.waitFor((event) => event.type === 'file_change' && event.path === 'n80')
    const before = Date.now()
    killAll(sandboxesOf(stack).flat())
    await agent.rest()
    const events = await agent.events()
    const [recovery] = all(events, 'recovery')
    expect(recovery).toMatchObject({ reason: 'lost', proven: true })
    expect(before - recovery!.capturedAt!).toBeLessThan(5000)
    await expectAllOnce(agent, events)
  })
})

const all = <T extends Logged['type']>(events: readonly Logged[], type: T) =>
  events.filter((event): event is Extract<Logged, { type: T }> => event.type === type)
