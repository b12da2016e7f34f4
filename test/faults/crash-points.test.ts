import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { crashPoints, parseCrashOrder, type CrashPointName, type EnsembleId } from '@tutti/core'
import { RepositorySourceSchema } from '@tutti/proto'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { driveAgent } from '../cases/agent-driver.ts'
import { connect } from '../cases/connect.ts'
import { nothingLeft } from '../cases/nothing-left.ts'
import { driveEnsemble, requestOf } from './ensemble-driver.ts'
import { expectWholeLogs, of } from './whole-logs.ts'

const temporalPath = inject('temporalServer')

/** Steps that happen all the time: the first is in the request, these are in the middle of the agents' work. */
const passings: Partial<Record<CrashPointName, number>> = {
  'log.append': 6,
  'catalog.write': 9,
  'blob.put': 5,
}
/** The only step that is not one of an ensemble. */
const ofAgents: CrashPointName = 'agent.start'
/**
 * What one ensemble goes through, in the order of its life. Each step costs two crashes, and a turn survives three: one of the
 * steps that a turn begins anew after, for each ensemble.
 */
const courses: readonly (readonly CrashPointName[])[] = [
  ['log.append', 'release.sandbox', 'log.archive'],
  ['catalog.write', 'ensemble.gather'],
  ['blob.put', 'ensemble.combine'],
  ['ensemble.start', 'admit.lease', 'provision.sandbox', 'deliver.push'],
  ['hydrate.workspace', 'ensemble.verify'],
  ['turn.run', 'deliver.pull_request'],
  ['turn.checkpoint', 'deliver.record'],
  ['turn.checkpoint_event'],
  ['turn.checkpoint_kept'],
]

describe.skipIf(!temporalPath)('a process that dies at a durable step, right before and right after', () => {
  let stack: TuttiStack
  let repository: TestRepository

  beforeEach(async () => {
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { TUTTI_MAX_SANDBOXES: '2', TUTTI_HEARTBEAT_TIMEOUT: '1s' },
    })
    repository = createTestRepository({ 'README.md': 'hello\n' })
  })
  afterEach(async () => {
    await stack.remove()
    repository.remove()
  })

  /** A server that dies at the step, once; resolves when it is dead. It may be dead before it is ready. */
  const dieAt = async (order: string, meanwhile: () => Promise<void>) => {
    const { name, when, passing } = parseCrashOrder(order)!
    const ready = await stack.start({ TUTTI_CRASH_AT: order }).catch(() => undefined)
    if (ready) {
      await meanwhile().catch((error: { code?: string }) => expect(error.code).toBe('unavailable'))
      expect(await stack.ended()).toBeNull()
    }
    expect(existsSync(join(stack.dataDir, 'crashed', `crashed-${name}-${when}-${passing}`))).toBe(true)
  }

  test('all of them are here', () => {
    expect([...courses.flat(), ofAgents].toSorted()).toEqual(Object.keys(crashPoints).toSorted())
  })

  test.for(courses.map((names) => [names.join(', '), names] as const))(
    '%s',
    { timeout: 180_000 },
    async ([, names]) => {
      let ensembleId: EnsembleId | undefined
      // The client repeats its request under the same key until it has an answer.
      const start = async () => {
        if (ensembleId) return
        const client = connect(stack)
        const request = await requestOf(client, {
          repository: repository.path,
          agents: ["command:sh -c 'echo 1 > one'", "command:sh -c 'echo 2 > two'"],
          spec: { checkCommand: 'test -s README.md' },
          idempotencyKey: `once-${names[0]}`,
        })
        ensembleId = (await client.composers.startParallelAgentWorkflow(request)).ensembleId as EnsembleId
      }
      for (const name of names) {
        await dieAt(`${name}:before:${passings[name] ?? 1}`, start)
        await dieAt(`${name}:after:1`, start)
      }
      await stack.start()
      await start()

      const ensemble = driveEnsemble(stack, ensembleId!)
      const { reason, synthesis, pullRequest } = await ensemble.end()
      expect(reason).toBe('completed')
      expect(repository.tree(synthesis!.commit)).toEqual({
        'README.md': '100644 hello\n',
        one: '100644 1\n',
        two: '100644 2\n',
      })
      expect(pullRequest!.number).toBe(1n)
      expect(repository.git('branch', '--list', 'tutti/*').trim()).toBe(pullRequest!.branch)
      const events = await ensemble.events()
      expect(of(events, 'phase').map(({ phase }) => phase)).toEqual([
        'STARTING',
        'CHILDREN_RUNNING',
        'GATHERING',
        'SYNTHESIZING',
        'COMPLETED',
      ])
      expect(of(events, 'delivery')).toHaveLength(1)
      await expectWholeLogs(ensemble)
      await nothingLeft(stack)
      const { ensembles } = await connect(stack).ensembles.listEnsembles({ pageSize: 1000 })
      expect(ensembles).toHaveLength(1)
    },
  )

  test('agent.start', { timeout: 90_000 }, async () => {
    let bcId: string | undefined
    const start = async () => {
      if (bcId) return
      const client = connect(stack)
      const added = await client.repositories.addRepository({ path: repository.path })
      const { agent } = await client.agents.createAgent({
        prompt: 'write: made.txt once',
        repository: create(RepositorySourceSchema, {
          location: { case: 'registered', value: added.repository!.name },
        }),
        options: { agent: { spec: 'embedded:scripted' } },
        idempotencyKey: 'once-agent',
      })
      bcId = agent!.bcId
    }
    await dieAt(`${ofAgents}:before:1`, start)
    await dieAt(`${ofAgents}:after:1`, start)
    await stack.start()
    await start()
    const agent = driveAgent(connect(stack), bcId!)
    await agent.rest()
    const events = await agent.events()
    expect(events.filter(({ type }) => type === 'user_message')).toHaveLength(1)
    expect(events.filter(({ type }) => type === 'turn_ended')).toMatchObject([{ reason: 'completed' }])
    const { composers } = await connect(stack).composers.listBackgroundComposers({ pageSize: 1000 })
    expect(composers).toHaveLength(1)
  })
})
