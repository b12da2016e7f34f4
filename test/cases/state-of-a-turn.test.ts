import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { TuttiClient } from '@tutti/client'
import { CloudAgentWorkflowStatus, ToolCallOutcome } from '@tutti/proto'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)(
  'the state of an agent and its files, saved by a worker',
  { timeout: 120_000 },
  () => {
    let stack: TuttiStack
    let client: TuttiClient
    let repository: TestRepository

    beforeAll(async () => {
      const env = { TUTTI_STATE_INTERVAL: '1s', TUTTI_CHECKPOINT_INTERVAL: '1s' }
      stack = await createTuttiStack({ temporalPath: temporalPath!, env })
      await stack.start()
      client = connect(stack)
      repository = createTestRepository({ 'README.md': 'hello\n' })
    })
    afterAll(async () => {
      await stack.remove()
      repository.remove()
    })

    test("within a turn and at its end; every blob that the log names is its owner's", async () => {
      const prompt = script(
        'todo: look; fix',
        'run: echo kept > kept.txt; until test -e go; do sleep 0.1; done',
        'say: done',
      )
      const agent = await startAgent(client, {
        prompt,
        repository: repository.path,
        agent: 'embedded:scripted',
      })
      const { bcId } = agent
      const during = await agent.waitFor((event) => event.type === 'state_saved')
      // The catalog follows the event.
      const info = await vi.waitFor(
        async () => {
          const known = await client.composers.getBackgroundComposerInfo({ bcId })
          expect(known.metadata).toBeDefined()
          return known
        },
        { timeout: 20_000 },
      )
      expect(info.metadata!.workflowStatus).toBe(CloudAgentWorkflowStatus.RUNNING)
      expect(info.metadata!.offsetKey < during.offset).toBe(true)
      await client.agents.stopAgent({ bcId })
      await agent.rest()
      await agent.followUp(script('run: cat kept.txt', 'say: all done'))
      await agent.rest()
      const completed = async () =>
        (await client.composers.getBackgroundComposerInfo({ bcId })).cloudAgentState?.numCompletedTurns
      await expect.poll(completed, { timeout: 10_000 }).toBe(2)

      const { cloudAgentState: state, metadata } = await client.composers.getBackgroundComposerInfo({ bcId })
      expect(metadata?.workflowStatus).toBe(CloudAgentWorkflowStatus.IDLE)
      const row = await agent.get()
      expect(state).toMatchObject({
        conversationState: {
          turns: [
            { userMessage: { text: prompt }, reason: 'stopped_by_user' },
            {
              text: expect.stringContaining('all done') as string,
              reason: 'completed',
              toolCalls: [{ name: 'shell', result: { outcome: ToolCallOutcome.SUCCEEDED, exitCode: 0 } }],
            },
          ],
          todos: [{ content: 'look' }, { content: 'fix' }],
        },
        numCompletedTurns: 2,
        startingCommit: row.baseCommit,
        tutti: { reason: 'completed', incarnation: row.state?.incarnation, commit: row.state?.commit },
      })
      const events = await agent.events()
      const named = events.flatMap((event) => {
        if (event.type === 'state_saved' || event.type === 'session_saved') return [event.blobId]
        return event.type === 'file_change' && event.hash ? [event.hash] : []
      })
      expect(events.filter((event) => event.type === 'state_saved').length).toBeGreaterThanOrEqual(3)
      expect(named.length).toBeGreaterThan(4)
      const db = new DatabaseSync(join(stack.dataDir, 'tutti.db'), { readOnly: true })
      const owned = db.prepare("SELECT blob_id FROM blob_refs WHERE owner = 'local'").all()
      db.close()
      expect(owned.map((ref) => ref['blob_id'])).toEqual(expect.arrayContaining(named))
    })

    test('checkpoints at a commit, before its result is released, and after each interval of a long turn', async () => {
      const agent = await startAgent(client, {
        prompt: script(
          'run: echo 1 > committed; git add committed; git commit -qm mine',
          'run: echo 1 > one; until test -e go; do sleep 0.1; done',
        ),
        repository: repository.path,
        agent: 'embedded:scripted',
      })
      const atCommit = await agent.waitFor((event) => event.type === 'checkpoint')
      const released = await agent.waitFor((event) => event.type === 'tool_call_completed')
      expect(atCommit).toMatchObject({ filesChanged: 1 })
      expect(atCommit.offset < released.offset).toBe(true)
      await agent.waitFor((event) => event.type === 'checkpoint' && event.filesChanged === 2)
      expect((await agent.events()).map(({ type }) => type)).not.toContain('turn_ended')
      await client.agents.stopAgent({ bcId: agent.bcId })
      await agent.rest()
    })
  },
)
