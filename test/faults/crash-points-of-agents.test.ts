import { create } from '@bufbuild/protobuf'
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
import { crashPointsOf } from './crash-points-of.ts'
import { dieAt, roleDiesAt } from './die-at.ts'

const temporalPath = inject('temporalServer')
const [ofAgents, ofRestoring, [ofBuckets]] = crashPointsOf.agents

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

  const turnOf = (name: string) =>
    script(`write: ${name}.txt ${name}`, `run: git add -A; git commit -qm ${name} || true`)

  /** Idle agents give up their sandbox, so that the next worker has nothing to recover from. */
  const quickly = { TUTTI_INACTIVITY: '1s' }
  test(`${ofAgents.join(', ')}`, { timeout: 360_000 }, async () => {
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
    await roleDiesAt(stack, 'api', `${inApi}:before:1`, quickly, begin)
    await roleDiesAt(stack, 'api', `${inApi}:after:1`, quickly, begin)
    await stack.serve('api', quickly)
    await begin()
    const agent = driveAgent(connect(stack), bcId!)
    const dieThenGoOn = async (name: string, meanwhile = async () => {}) => {
      await roleDiesAt(stack, 'worker', `${name}:before:1`, quickly, meanwhile)
      await roleDiesAt(stack, 'worker', `${name}:after:1`, quickly, async () => {})
      const worker = await stack.serve('worker')
      await agent.rest()
      await nothingLeft(stack, 20_000)
      await worker.stop()
    }
    await dieThenGoOn(first)
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

  test(`${ofRestoring.join(', ')}`, { timeout: 120_000 }, async () => {
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
        await dieAt(stack, `${name}:${when}:1`, async () => void (await restore(name, offset)))
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
