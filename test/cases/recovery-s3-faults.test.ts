import type { TuttiClient } from '@tutti/client'
import {
  createFaultProxy,
  createS3Server,
  createTestRepository,
  createTuttiStack,
  type Fault,
  type FaultProxy,
  type S3Server,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent } from './agent-driver.ts'
import { connect } from './connect.ts'
import { list, listingIn } from './recovery-driver.ts'
import { killSandbox } from './sandboxes.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')
const path = inject('s3Servers').ministack
const why = path === null ? `: ${inject('s3Missing')}` : ''

const whileWriting: readonly Fault[] = [
  { kind: 'refuse' },
  { kind: 'reset_request', afterBytes: 3 },
  { kind: 'black_hole' },
  { kind: 'hold', until: new Promise((resolve) => setTimeout(resolve, 3000)) },
  { kind: 'error', status: 503, code: 'SlowDown' },
  { kind: 'error', status: 500, code: 'InternalError' },
  { kind: 'duplicate_answer' },
  { kind: 'corrupt_request', atByte: 2 },
  { kind: 'lost_answer' },
]

const whileReading: readonly Fault[] = [
  { kind: 'refuse' },
  { kind: 'reset_answer', afterBytes: 3 },
  { kind: 'stall_answer', afterBytes: 3 },
  { kind: 'error', status: 503, code: 'SlowDown' },
  { kind: 'duplicate_answer' },
  { kind: 'corrupt_answer', atByte: 2 },
]

describe.skipIf(!temporalPath || path === null)(`a bucket that fails${why}`, { timeout: 240_000 }, () => {
  let server: S3Server
  let proxy: FaultProxy
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository

  beforeAll(async () => {
    server = await createS3Server('ministack', path!)
    await server.createBucket('tutti')
    proxy = await createFaultProxy(server.endpoint)
    const { accessKeyId, secretAccessKey } = server.credentials
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: {
        TUTTI_BLOBS_BUCKET: 'tutti',
        TUTTI_BLOBS_ENDPOINT: proxy.endpoint,
        AWS_ACCESS_KEY_ID: accessKeyId,
        AWS_SECRET_ACCESS_KEY: secretAccessKey,
      },
    })
    await stack.start()
    client = connect(stack)
    repository = createTestRepository({ kept: 'k' })
  })
  afterAll(async () => {
    await stack?.remove()
    await proxy?.close()
    await server?.remove()
    repository?.remove()
  })

  test('every fault once, while a turn writes and while the next sandbox reads: nothing is lost, and nothing wrong is applied', async () => {
    // Each for another file, so that all of them are met at the same time.
    const plan = (method: string, faults: readonly Fault[]) => {
      const met = new Set<string>()
      for (const fault of faults)
        proxy.fail(fault, {
          when: ({ method: asked, url }) => {
            const object = url.split('?')[0]!
            const fits = asked === method && /sha256_/.test(object) && !met.has(object)
            if (fits) met.add(object)
            return fits
          },
        })
    }
    const agent = await startAgent(client, {
      prompt: 'say: ready',
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.rest()

    plan('PUT', whileWriting)
    await agent.followUp(
      script(
        'run: <<EOF',
        // The turn begins anew in the next sandbox, and there they are.
        'if [ ! -e large ]; then',
        'for i in $(seq 30); do echo "small $i" > small-$i; done',
        'for i in 1 2 3; do head -c 1000000 /dev/urandom > middle-$i; done',
        'head -c 20000000 /dev/urandom > large',
        'fi',
        list,
        'sleep 952',
        'EOF',
      ),
    )
    /** All events once the list has been printed so many times. */
    const listed = async (times: number) => {
      let count = 0
      await agent.waitFor((event) => shellOutput([event]).includes('LISTING') && (count += 1) === times)
      return agent.events()
    }
    const written = listingIn(await listed(1))
    expect(Object.keys(written)).toHaveLength(35)
    // A capture in the middle of the writing has as many entries, and a part of the file.
    const [, large] = written['large']!.split(' ')
    await agent.waitFor(
      (event) => event.type === 'file_change' && event.path === 'large' && event.hash === `sha256_${large}`,
    )

    const before = (await agent.events()).length
    plan('GET', whileReading)
    killSandbox(stack, 'sleep 952')
    const read = (await listed(2)).slice(before)
    expect(listingIn(read)).toEqual(written)
    expect(read.filter(({ type }) => type === 'recovery')).toMatchObject([
      { proven: true, replayed: 34, missing: [] },
    ])
    const met = proxy.requests.flatMap(({ method, fault }) => (fault ? [`${method} ${fault.kind}`] : []))
    expect(met.sort()).toEqual(
      [
        ...whileWriting.map(({ kind }) => `PUT ${kind}`),
        ...whileReading.map(({ kind }) => `GET ${kind}`),
      ].sort(),
    )
    const { stdout } = await stack.run(['agent', 'recover', agent.bcId, '--verify'])
    expect(stdout).toContain('as recorded')
  })
})
