import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { crashPoints, parseCrashOrder, type CrashPointName, type EnsembleId } from '@tutti/core'
import { RepositorySourceSchema } from '@tutti/proto'
import {
  createS3Server,
  createTestRepository,
  createTuttiStack,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { driveAgent, startAgent } from '../cases/agent-driver.ts'
import { connect } from '../cases/connect.ts'
import { nothingLeft } from '../cases/nothing-left.ts'
import { script } from '../cases/script.ts'
import { driveEnsemble, requestOf } from './ensemble-driver.ts'
import { expectWholeLogs, of } from './whole-logs.ts'

const temporalPath = inject('temporalServer')

/** Steps that happen all the time: the first is in the request, these are in the middle of the agents' work. */
const passings: Partial<Record<CrashPointName, number>> = {
  'log.append': 6,
  'catalog.write': 9,
  'blob.put': 5,
}
/** Steps of a single agent: two of its start, and what a turn does, of which each has a turn of its own. */
const ofAgents: readonly CrashPointName[] = [
  'agent.start',
  'provision.mirror',
  'provision.setup',
  'capture.contents',
  'capture.git_state',
  'capture.events',
  'turn.session',
]
/** A workspace that is put back by hand. */
const ofRestoring = ['restore.commit', 'restore.events'] as const satisfies readonly CrashPointName[]
/** Only with a bucket. */
const ofBuckets: CrashPointName = 'blob.multipart'
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
  ['turn.checkpoint_event', 'agent.state'],
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
    expect([...courses.flat(), ...ofAgents, ...ofRestoring, ofBuckets].toSorted()).toEqual(
      Object.keys(crashPoints).toSorted(),
    )
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

  const turnOf = (name: string) =>
    script(`write: ${name}.txt ${name}`, `run: git add -A; git commit -qm ${name} || true`)

  /** One that its process's death has interrupted is asked again, under the same key, until it is answered. */
  const surely = async (work: () => Promise<unknown>) =>
    work().catch((error: { code?: string }) => expect(error.code).toBe('unavailable'))

  /** Idle agents give up their sandbox, so that the next worker has nothing to recover from. */
  const quickly = { TUTTI_INACTIVITY: '1s' }
  /** As `dieAt`, for one role alone: the others live on. */
  const roleDiesAt = async (role: 'api' | 'worker', order: string, meanwhile = async () => {}) => {
    const { name, when, passing } = parseCrashOrder(order)!
    const process = await stack.serve(role, { ...quickly, TUTTI_CRASH_AT: order }).catch(() => undefined)
    if (process) {
      await surely(meanwhile)
      expect(await process.ended).toBeNull()
    }
    expect(existsSync(join(stack.dataDir, 'crashed', `crashed-${name}-${when}-${passing}`))).toBe(true)
  }

  test(`${ofAgents.join(', ')}`, { timeout: 240_000 }, async () => {
    const [inApi, first, ...steps] = ofAgents
    let bcId: string | undefined
    const begin = async () => {
      if (bcId) return
      const client = connect(stack)
      const added = await client.repositories.addRepository({ path: repository.path })
      const { agent } = await client.agents.createAgent({
        prompt: turnOf('start'),
        repository: create(RepositorySourceSchema, {
          location: { case: 'registered', value: added.repository!.name },
        }),
        options: { agent: { spec: 'embedded:scripted' }, setupCommand: 'true' },
        idempotencyKey: 'once-agent',
      })
      bcId = agent!.bcId
    }
    await roleDiesAt('api', `${inApi!}:before:1`, begin)
    await roleDiesAt('api', `${inApi!}:after:1`, begin)
    await stack.serve('api', quickly)
    await begin()
    const agent = driveAgent(connect(stack), bcId!)
    const dieThenGoOn = async (name: string, meanwhile = async () => {}) => {
      await roleDiesAt('worker', `${name}:before:1`, meanwhile)
      await roleDiesAt('worker', `${name}:after:1`)
      const worker = await stack.serve('worker')
      await agent.rest()
      await nothingLeft(stack, 20_000)
      await worker.stop()
    }
    await dieThenGoOn(first!)
    for (const name of steps) await dieThenGoOn(name, async () => void (await agent.followUp(turnOf(name))))
    await stack.serve('worker')
    const events = await agent.events()
    const turns = 1 + steps.length
    expect(events.filter(({ type }) => type === 'user_message')).toHaveLength(turns)
    const ends = events.flatMap((event) => (event.type === 'turn_ended' ? [event.reason] : []))
    expect(ends).toEqual(Array.from({ length: turns }, () => 'completed'))
    // Whatever was cut off: each file once, and nothing but whole captures that are proven.
    expect(events.flatMap((event) => (event.type === 'recovery' ? [event.proven] : []))).not.toContain(false)
    const { branch } = await connect(stack).agents.deliverAgent({ bcId: bcId! })
    expect(repository.tree(branch)).toEqual({
      'README.md': '100644 hello\n',
      ...Object.fromEntries(['start', ...steps].map((name) => [`${name}.txt`, `100644 ${name}\n`])),
    })
    const { composers } = await connect(stack).composers.listBackgroundComposers({ pageSize: 1000 })
    expect(composers).toHaveLength(1)
    await nothingLeft(stack, 20_000)
  })

  test('restore.commit, restore.events', { timeout: 120_000 }, async () => {
    await stack.start()
    const agent = await startAgent(connect(stack), {
      prompt: script('write: made.txt 1', 'run: echo 2 > made.txt; echo late > late.txt'),
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    const { offset } = await agent.waitFor((event) => event.type === 'tool_call_completed')
    await agent.rest()
    await stack.stop()
    const restore = (idempotencyKey: string, atOffsetKey: string) =>
      connect(stack).agents.recoverAgent({ bcId: agent.bcId, idempotencyKey, atOffsetKey })
    for (const name of ofRestoring) {
      for (const when of ['before', 'after'])
        await dieAt(`${name}:${when}:1`, async () => void (await restore(name, offset)))
      await stack.start()
      expect(await restore(name, offset)).toMatchObject({ proven: true, missing: [] })
      expect(await stack.stop()).toBe(0)
    }
    await stack.start()
    const now = driveAgent(connect(stack), agent.bcId)
    const restored = (await now.events()).filter((event) => event.type === 'workspace_restored')
    expect(restored.map(({ atOffset }) => atOffset)).toEqual([offset, offset])
    expect(new Set(restored.map(({ requestId }) => requestId)).size).toBe(2)
    const { branch } = await connect(stack).agents.deliverAgent({ bcId: agent.bcId })
    expect(repository.tree(branch)).toEqual({
      'README.md': '100644 hello\n',
      'made.txt': '100644 1\n',
    })
    await connect(stack).composers.archiveBackgroundComposer({ bcId: agent.bcId })
    await nothingLeft(stack)
  })
})

const { ministack } = inject('s3Servers')
describe.skipIf(!temporalPath || ministack === null)(`with a bucket ${inject('s3Missing')}`, () => {
  test(`${ofBuckets}`, { timeout: 120_000 }, async () => {
    const server = await createS3Server('ministack', ministack!)
    await server.createBucket('tutti')
    const { accessKeyId, secretAccessKey } = server.credentials
    const stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: {
        TUTTI_HEARTBEAT_TIMEOUT: '1s',
        TUTTI_BLOBS_BUCKET: 'tutti',
        TUTTI_BLOBS_ENDPOINT: server.endpoint,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
      },
    })
    const repository = createTestRepository({ 'README.md': 'hello\n' })
    try {
      await stack.serve('api')
      const dying = await stack.serve('worker', { TUTTI_CRASH_AT: `${ofBuckets}:before:1` })
      const agent = await startAgent(connect(stack), {
        prompt: script('run: head -c 20000000 /dev/zero | tr "\\0" L > large; sleep 0'),
        repository: repository.path,
        agent: 'embedded:scripted',
      })
      expect(await dying.ended).toBeNull()
      expect(await (await stack.serve('worker', { TUTTI_CRASH_AT: `${ofBuckets}:after:1` })).ended).toBeNull()
      await stack.serve('worker')
      expect((await agent.rest()).state?.reason).toBe('completed')
      expect((await stack.run(['agent', 'recover', agent.bcId, '--verify'])).stdout).toContain('as recorded')
      const { branch } = await connect(stack).agents.deliverAgent({ bcId: agent.bcId })
      expect(repository.git('show', `${branch}:large`)).toBe('L'.repeat(20_000_000))
    } finally {
      await stack.remove()
      await server.remove()
      repository.remove()
    }
  })
})
