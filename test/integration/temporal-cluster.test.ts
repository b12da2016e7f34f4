import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import { searchAttributes } from '@tutti/core'
import {
  createTestCertificates,
  createTestRepository,
  createTuttiStack,
  startTlsProxy,
  type TestRepository,
  type TlsProxy,
  type TuttiStack,
} from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'

const temporalPath = inject('temporalServer')

describe.skipIf(!temporalPath)(
  `a cluster elsewhere, which wants TLS and a client certificate ${inject('temporalMissing')}`,
  { timeout: 90_000 },
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'tutti-cluster-'))
    const certificates = createTestCertificates(folder)
    let cluster: TestWorkflowEnvironment
    let proxy: TlsProxy
    let stack: TuttiStack
    let repository: TestRepository
    let access: Record<string, string>

    beforeAll(async () => {
      cluster = await TestWorkflowEnvironment.createLocal({
        server: {
          executable: { type: 'existing-path', path: temporalPath! },
          namespace: 'elsewhere',
          log: { format: 'pretty', level: 'error' },
          searchAttributes: Object.values(searchAttributes).map((name) =>
            defineSearchAttributeKey(name, SearchAttributeType.KEYWORD),
          ),
        },
      })
      proxy = await startTlsProxy(cluster.address, certificates)
      repository = createTestRepository({ 'README.md': 'hello\n' })
      access = {
        TEMPORAL_ADDRESS: proxy.address,
        TEMPORAL_NAMESPACE: 'elsewhere',
        TEMPORAL_TLS_SERVER_CA_CERT_PATH: certificates.authority.certPath,
        TEMPORAL_TLS_CLIENT_CERT_PATH: certificates.client.certPath,
        TEMPORAL_TLS_CLIENT_KEY_PATH: certificates.client.keyPath,
      }
      stack = await createTuttiStack({ temporalPath: temporalPath!, env: access })
    })
    afterAll(async () => {
      await stack?.remove()
      await proxy?.close()
      await cluster?.teardown()
      repository?.remove()
      rmSync(folder, { recursive: true, force: true })
    })

    test('runs an ensemble by it: client and worker both connect', async () => {
      await stack.start()
      const result = await stack.json<{ reason: string }>(
        ['run', 'Write a file', '--repo', repository.path, '-n', '1'].concat([
          '--agent',
          'command:touch made.txt',
          '--pr',
          'none',
        ]),
      )
      expect(result.reason).toBe('completed')
      expect(stack.temporalPid()).toBeUndefined()
      const workflows = []
      for await (const { type } of cluster.client.workflow.list()) workflows.push(type)
      expect(workflows.toSorted()).toEqual(['cloudAgent', 'parallelAgents'])
      await stack.stop()
    })

    const wrong: Record<string, { env: Record<string, string>; says: RegExp; code: number }> = {
      'no TLS': {
        env: {
          TEMPORAL_TLS_SERVER_CA_CERT_PATH: '',
          TEMPORAL_TLS_CLIENT_CERT_PATH: '',
          TEMPORAL_TLS_CLIENT_KEY_PATH: '',
        },
        says: /without TLS\) does not answer for the namespace elsewhere: .*TEMPORAL_TLS/,
        code: 69,
      },
      'an authority that nobody knows': {
        env: { TEMPORAL_TLS_SERVER_CA_CERT_PATH: '' },
        says: /with TLS\) does not answer .*certificate/,
        code: 69,
      },
      'no certificate of its own': {
        env: { TEMPORAL_TLS_CLIENT_CERT_PATH: '', TEMPORAL_TLS_CLIENT_KEY_PATH: '' },
        says: /with TLS\) does not answer .*certificate/,
        code: 69,
      },
      'a file that is not there': {
        env: { TEMPORAL_TLS_CLIENT_KEY_PATH: join(folder, 'none.key') },
        says: /none\.key/,
        code: 64,
      },
      'another namespace': {
        env: { TEMPORAL_NAMESPACE: 'nowhere' },
        says: /Namespace nowhere is not found/,
        code: 69,
      },
    }
    test.each(Object.entries(wrong))('with %s it says what is wrong', async (_name, { env, says, code }) => {
      const run = await stack.cli(['dev'], { env }).done
      expect(run.stderr).toMatch(says)
      expect(run.code).toBe(code)
    })
  },
)
