import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { driveAgent, shellOutput, startAgent, type AgentDriver, type Logged } from './agent-driver.ts'
import { connect } from './connect.ts'
import { nothingLeft } from './nothing-left.ts'
import { killAll, sandboxesOf } from './sandboxes.ts'

const temporalPath = inject('temporalServer')

/** The times of the case, ten times as fast: a file every tenth of a second, 200 of them, from where it was. */
const agentSpec =
  "command:sh -c 'i=$(ls n* 2>/dev/null | wc -l); while [ $i -lt 200 ]; do i=$((i+1)); echo $i > n$i; sleep 0.1; done'"
/** Says how many files there are, and leaves a program behind that goes on with them. */
const leavesWriter =
  'command:sh -c \'echo $(ls n* 2>/dev/null | wc -l) there; setsid sh -c "while :; do i=\\$((i+1)); echo > n\\$i; sleep 0.1; done" >/dev/null 2>&1 </dev/null &\''
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
  async function begin(env: Readonly<Record<string, string>>, agent = agentSpec): Promise<AgentDriver> {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env })
    await stack.start()
    return startAgent(connect(stack), { prompt: 'write them', repository: repository.path, agent })
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

  const restart = async () => {
    await stack.stop()
    await stack.start()
  }
  test.each([
    [
      'before the end of its life',
      'expires',
      { TUTTI_SANDBOX_MAX_LIFE: '15s', TUTTI_SANDBOX_END_MARGIN: '6s' },
      undefined,
    ],
    ['for inactivity', 'released', { TUTTI_INACTIVITY: '3s' }, undefined],
    ['with its worker', 'released', {}, restart],
  ])(
    'SBX-05 announced, to an agent at rest, %s: what it left running is captured before it, and its next turn has all of it',
    async (_, reason, env, stop) => {
      // Nothing but the release itself captures after the turn.
      const alone = { TUTTI_CAPTURE_INTERVAL: '10m', TUTTI_WATCH_WORKSPACE: 'no' }
      const first = await begin({ ...env, ...alone }, leavesWriter)
      await first.rest()
      const inTurn = written(await first.events())
      await stop?.()
      const agent = driveAgent(connect(stack), first.bcId)
      await agent.seen((event) => event.type === 'sandbox' && event.state === 'destroyed')
      const events = await agent.events()
      expect(all(events, 'sandbox').at(-1)!.reason ?? 'released').toBe(reason)
      const count = written(events)
      expect(count).toBeGreaterThan(inTurn)
      await agent.followUp('again')
      await agent.rest()
      const later = await agent.events()
      expect(all(later, 'recovery')[0]).toMatchObject({ reason, proven: true, missing: [] })
      expect(shellOutput(later)).toContain(`${count} there`)
    },
  )

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

const written = (events: readonly Logged[]) =>
  new Set(all(events, 'file_change').map(({ path }) => path)).size

const all = <T extends Logged['type']>(events: readonly Logged[], type: T) =>
  events.filter((event): event is Extract<Logged, { type: T }> => event.type === type)
