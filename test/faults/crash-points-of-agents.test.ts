import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { create } from '@bufbuild/protobuf'
import { blobIdOf } from '@tutti/blob-store'
import { RepositorySourceSchema } from '@tutti/proto'
import {
  createS3Server,
  createTestRepository,
  createTuttiStack,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { driveAgent, startAgent, type AgentDriver } from '../cases/agent-driver.ts'
import { connect } from '../cases/connect.ts'
import { nothingLeft } from '../cases/nothing-left.ts'
import { script } from '../cases/script.ts'
import { crashPointsOf, crashPointsOfEach } from './crash-points-of.ts'
import { commandDiesAt, dieAt, roleDiesAt } from './die-at.ts'

const temporalPath = inject('temporalServer')
const [ofAgents, ofStores, [ofBuckets]] = crashPointsOf.agents

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

  /** A client that repeats its request under the same key until it has an answer. */
  const createOnce = async (prompt: string): Promise<string> => {
    const client = connect(stack)
    const added = await client.repositories.addRepository({ path: repository.path })
    const { agent } = await client.agents.createAgent({
      prompt,
      repository: create(RepositorySourceSchema, {
        location: { case: 'registered', value: added.repository!.name },
      }),
      options: { agent: { spec: 'embedded:scripted' }, setupCommand: 'true' },
      idempotencyKey: 'once-agent',
    })
    return agent!.bcId
  }
  const store = async (text: string) => {
    const content = Buffer.from(text)
    const id = blobIdOf(content)
    const bytes = async function* () {
      yield content
    }
    await connect(stack).blobs.store(id, { size: content.length, bytes }, AbortSignal.timeout(30_000))
    return id
  }
  /** A file of the user's, under the same key each time. */
  const sendOnce = async (bcId: string, path: string) => {
    const id = await store(`${path}\n`)
    const hash = Uint8Array.from(Buffer.from(id.slice('sha256_'.length), 'hex'))
    const files = [{ path: Buffer.from(path), mode: '100644', hash }]
    await connect(stack).agents.fileSync({ bcId, files, idempotencyKey: `once-${path}` })
  }

  /** In the middle of a turn; a data folder has each death once, and the API has had the first. */
  const passings = { 'blob.put': 2, 'catalog.write': 4, 'log.append': 4 }
  /** Idle agents give up their sandbox, so that the next worker has nothing to recover from. */
  const quickly = { TUTTI_INACTIVITY: '1s' }
  test(`${ofAgents.join(', ')}`, { timeout: 600_000 }, async () => {
    const [inApi, first, ...steps] = ofAgents
    let bcId: string | undefined
    const begin = async () => void (bcId ??= await createOnce(turnOf('start')))
    await roleDiesAt(stack, 'api', `${inApi}:before:1`, quickly, begin)
    await roleDiesAt(stack, 'api', `${inApi}:after:1`, quickly, begin)
    // What a user sends is accepted while no worker is there.
    const sent: string[] = []
    for (const name of crashPointsOfEach.toReversed())
      for (const when of ['before', 'after']) {
        sent.push(`${name}-${when}`)
        await roleDiesAt(stack, 'api', `${name}:${when}:1`, quickly, async () => {
          await begin()
          await sendOnce(bcId!, sent.at(-1)!)
        })
      }
    await stack.serve('api', quickly)
    for (const path of sent) await sendOnce(bcId!, path)
    const agent = driveAgent(connect(stack), bcId!)
    const inTurns = crashPointsOfEach.flatMap((name) => [
      `${name}:before:${passings[name]}`,
      `${name}:after:${passings[name]}`,
    ])
    /** With a third death in the same turn: so many it survives. */
    const dieThenGoOn = async (name: string, meanwhile = async () => {}, inTurn = inTurns.shift()) => {
      await roleDiesAt(stack, 'worker', `${name}:before:1`, quickly, meanwhile)
      await roleDiesAt(stack, 'worker', `${name}:after:1`, quickly, async () => {})
      if (inTurn) await roleDiesAt(stack, 'worker', inTurn, quickly, async () => {})
      const worker = await stack.serve('worker')
      await agent.rest()
      await nothingLeft(stack, 20_000)
      await worker.stop()
    }
    await dieThenGoOn(first)
    for (const name of steps) {
      const followUp = async () => void (await agent.followUp(turnOf(name)))
      if (name !== 'hydrate.workspace') {
        await dieThenGoOn(name, followUp)
        continue
      }
      // In the middle of a turn: what the log has of its first call is in no commit.
      await roleDiesAt(stack, 'worker', 'capture.events:after:2', quickly, followUp)
      await dieThenGoOn(name, undefined, '')
    }
    expect(inTurns).toEqual([])
    await stack.serve('worker')
    const events = await agent.events()
    const turns = 1 + steps.length
    expect(events.filter(({ type }) => type === 'user_message')).toHaveLength(turns)
    const ends = events.flatMap((event) => (event.type === 'turn_ended' ? [event.reason] : []))
    expect(ends).toEqual(Array.from({ length: turns }, () => 'completed'))
    // Whatever was cut off: each file once, and nothing but whole captures that are proven.
    const recoveries = events.filter((event) => event.type === 'recovery')
    expect(recoveries.map(({ proven }) => proven)).not.toContain(false)
    // The one that died in the middle had something to write over its commit.
    expect(recoveries.at(-1)).toMatchObject({ reason: 'lost' })
    expect(recoveries.at(-1)!.replayed).toBeGreaterThan(0)
    const ofUser = events.flatMap((event) => (event.type === 'file_sync' ? [event.path] : []))
    expect(ofUser.toSorted()).toEqual(sent.toSorted())
    const { branch } = await connect(stack).agents.deliverAgent({ bcId: bcId! })
    expect(repository.tree(branch)).toEqual({
      'README.md': '100644 hello\n',
      ...Object.fromEntries(sent.map((path) => [path, `100644 ${path}\n`])),
      ...Object.fromEntries(['start', ...steps].map((name) => [`${name}.txt`, `100644 ${name}\n`])),
    })
    const { composers } = await connect(stack).composers.listBackgroundComposers({ pageSize: 1000 })
    expect(composers).toHaveLength(1)
    await nothingLeft(stack, 20_000)
  })

  test(`${ofStores.join(', ')}`, { timeout: 300_000 }, async () => {
    const [base, toCommit, toEvents, ofRebuild, ofSweep] = ofStores
    const begin = () =>
      createOnce(script('write: made.txt 1', 'run: echo 2 > made.txt; echo late > late.txt'))
    for (const when of ['before', 'after'])
      await dieAt(stack, `${base}:${when}:1`, async () => void (await begin()))
    await stack.start()
    const bcId = await begin()
    const agent = driveAgent(connect(stack), bcId)
    const { offset } = await agent.waitFor((event) => event.type === 'tool_call_completed')
    await agent.rest()
    await stack.stop()
    const archived = readdirSync(join(stack.dataDir, 'archive'), { recursive: true }).map(String)
    expect(archived.filter((name) => name.endsWith('.base.pack'))).toHaveLength(1)

    const restore = (idempotencyKey: string, atOffsetKey: string) =>
      connect(stack).agents.recoverAgent({ bcId, idempotencyKey, atOffsetKey })
    for (const name of [toCommit, toEvents]) {
      for (const when of ['before', 'after'])
        await dieAt(stack, `${name}:${when}:1`, async () => void (await restore(name, offset)))
      await stack.start()
      expect(await restore(name, offset)).toMatchObject({ proven: true, missing: [] })
      expect(await stack.stop()).toBe(0)
    }
    await stack.start()
    const now = driveAgent(connect(stack), bcId)
    const events = await now.events()
    const restored = events.filter((event) => event.type === 'workspace_restored')
    expect(restored.map(({ atOffset }) => atOffset)).toEqual([offset, offset])
    expect(new Set(restored.map(({ requestId }) => requestId)).size).toBe(2)
    const tree = { 'README.md': '100644 hello\n', 'made.txt': '100644 1\n' }
    const expectDelivered = async () => {
      const { branch } = await connect(stack).agents.deliverAgent({ bcId })
      expect(repository.tree(branch)).toEqual(tree)
    }
    /** All but how new it is, and of which position of the log: a rebuild brings it up to the last. */
    const stable = async (of: AgentDriver) => ({
      ...(await of.get()),
      updatedAt: undefined,
      headOffsetKey: '',
    })
    await expectDelivered()
    const row = await stable(now)
    expect(await stack.stop()).toBe(0)

    // The database is lost, and each rebuild of it is killed until the last.
    for (const name of readdirSync(stack.dataDir))
      if (name.startsWith('tutti.db')) rmSync(join(stack.dataDir, name))
    for (const order of [
      `${ofRebuild}:before:1`,
      `${ofRebuild}:after:1`,
      'catalog.write:after:2',
      'catalog.write:before:6',
    ])
      await commandDiesAt(stack, order, ['admin', 'rebuild'])
    expect(await stack.json(['admin', 'rebuild'])).toMatchObject({ logs: [{ log: bcId }] })
    await stack.start()
    const rebuilt = driveAgent(connect(stack), bcId)
    expect((await rebuilt.events()).slice(0, events.length)).toEqual(events)
    expect(await stable(rebuilt)).toEqual(row)
    await expectDelivered()
    expect(await stack.stop()).toBe(0)

    // Nothing of what is needed goes in a sweep that is cut off.
    for (const when of ['before', 'after'])
      await dieAt(
        stack,
        `${ofSweep}:${when}:1`,
        async () => {
          await store(`nobody's ${when}`)
          for (;;) await connect(stack).system.sweepBlobs({})
        },
        { TUTTI_RETENTION: '1s' },
      )
    await stack.start()
    const kept: string[] = []
    for await (const { part } of connect(stack).agents.readWorkspace({ bcId }))
      if (part.case === 'entry') kept.push(Buffer.from(part.value.path).toString())
    expect(kept.toSorted()).toEqual(Object.keys(tree))
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
