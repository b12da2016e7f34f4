import type { TuttiClient } from '@tutti/client'
import {
  createS3Server,
  createTestRepository,
  createTuttiStack,
  type S3Server,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { driveAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { listNow, loseSandbox, type Listing } from './recovery-driver.ts'

const temporalPath = inject('temporalServer')

describe.each(['ministack', 'versitygw'] as const)('%s', (kind) => {
  const path = inject('s3Servers')[kind]
  const why = path === null ? `: ${inject('s3Missing')}` : ''

  describe.skipIf(!temporalPath || path === null)(`blobs on S3${why}`, { timeout: 120_000 }, () => {
    let server: S3Server
    let stack: TuttiStack
    let client: TuttiClient
    let repository: TestRepository
    let agent: AgentDriver | undefined
    let listing: Listing

    beforeAll(async () => {
      server = await createS3Server(kind, path!)
      await server.createBucket('tutti')
      const { accessKeyId, secretAccessKey } = server.credentials
      stack = await createTuttiStack({
        temporalPath: temporalPath!,
        env: {
          TUTTI_BLOBS_BUCKET: 'tutti',
          TUTTI_BLOBS_PREFIX: 'here',
          TUTTI_BLOBS_ENDPOINT: server.endpoint,
          AWS_ACCESS_KEY_ID: accessKeyId,
          AWS_SECRET_ACCESS_KEY: secretAccessKey,
        },
      })
      await stack.start()
      client = connect(stack)
      repository = createTestRepository({ kept: 'k', old: 'o' })
    })
    afterAll(async () => {
      await stack?.remove()
      await server?.remove()
      repository?.remove()
    })

    test('a lost sandbox comes back from the bucket: files, commits, large and many', async () => {
      const lost = await loseSandbox(
        stack,
        client,
        repository,
        'rm old; echo 1 > a; git add a; git commit -qm C2; echo 2 >> a; head -c 20000000 /dev/urandom > large; mkdir many; for i in $(seq 200); do echo $i > many/$i; done',
        'git log --format=%s; git status --porcelain',
      )
      expect(lost.after).toEqual(lost.before)
      expect(Object.keys(lost.after)).toHaveLength(203)
      expect(lost.output).toBe('C2\nstart\n M a\n D old\n?? large\n?? many/\n')
      expect(existsSync(join(stack.dataDir, 'blobs'))).toBe(false)
      const { code, stdout } = await stack.run(['agent', 'recover', lost.agent.bcId, '--verify'])
      expect(code).toBe(0)
      expect(stdout).toContain('as recorded')
      agent = lost.agent
      listing = lost.after
    })

    test('with nothing left but the bucket, an agent is rebuilt and goes on', async () => {
      const events = await agent!.events()
      await stack.stop()
      rmSync(stack.dataDir, { recursive: true })
      repository.remove()
      const { logs } = await stack.json<{ logs: object[] }>(['admin', 'rebuild'])
      expect(logs).toMatchObject([{ log: agent!.bcId, there: false }])
      await stack.start()
      const again = driveAgent(connect(stack), agent!.bcId)
      expect((await again.events()).slice(0, events.length)).toEqual(events)
      expect(await listNow(again)).toEqual(listing)
    })
  })
})
