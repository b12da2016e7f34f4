import { createFaultProxy, createS3Server, createTestRepository } from '@tutti/testkit'
import { findS3Servers } from '../../scripts/setup/s3-servers.mjs'
import { startAgent } from '../cases/agent-driver.ts'
import { connect } from '../cases/connect.ts'
import { script } from '../cases/script.ts'
import { createBenchTutti } from './bench-stack.ts'
import type { Measurement } from './measurement.ts'

const turns = 12
const changed = 25

/** What a bucket is asked to write for one agent in an hour in which it gets a message every five minutes, and changes 25 files for each. */
export async function measurePuts(): Promise<Measurement[]> {
  const found = findS3Servers()
  const path = found.paths.ministack
  if (path === null) throw new Error(found.missing)
  const server = await createS3Server('ministack', path)
  await server.createBucket('tutti')
  const proxy = await createFaultProxy(server.endpoint)
  const tutti = await createBenchTutti({
    TUTTI_BLOBS_STORE: 's3',
    TUTTI_BLOBS_BUCKET: 'tutti',
    TUTTI_BLOBS_ENDPOINT: proxy.endpoint,
    AWS_ACCESS_KEY_ID: server.credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: server.credentials.secretAccessKey,
  })
  const repository = createTestRepository({ 'README.md': 'bench\n' })
  try {
    await tutti.start()
    const writing = () => proxy.requests.filter(({ method }) => method === 'PUT' || method === 'POST').length
    const agent = await startAgent(connect(tutti), {
      prompt: 'say: ready',
      repository: repository.path,
      agent: 'embedded:scripted',
    })
    await agent.rest()
    const before = writing()
    for (let turn = 0; turn < turns; turn += 1) {
      await agent.followUp(
        script(
          `run: for i in $(seq ${changed}); do echo "turn ${turn}, file $i" > file-$i; done`,
          'say: done',
        ),
      )
      await agent.rest()
    }
    const count = writing() - before
    const name = `requests that write to the bucket, ${turns} turns of ${changed} changed files`
    return [{ name, unit: 'requests', ours: count, runs: 1 }]
  } finally {
    await tutti.remove()
    repository.remove()
    await proxy.close()
    await server.remove()
  }
}
