import * as http2 from 'node:http2'
import { request as httpRequest } from 'node:http'
import { Socket } from 'node:net'

import { Code, ConnectError, createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import {
  AgentService,
  BackgroundComposerService,
  EnsembleService,
  PullRequestService,
  RepositoryService,
  SystemService,
} from '@tutti/proto'
import { createTestRepository } from '@tutti/testkit'
import { startTestApi, type TestApi } from '@tutti/testkit/test-api'
import { TuttiError } from '@tutti/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

let api: TestApi
const services = [
  AgentService,
  BackgroundComposerService,
  EnsembleService,
  PullRequestService,
  RepositoryService,
  SystemService,
]
const paths = services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`))

beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())

/** A call with exactly these headers; fetch sets some by itself. */
function call(
  path: string,
  headers: Record<string, string>,
  method = 'POST',
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      `${api.url}${path}`,
      { method, headers: { 'content-type': 'application/json', ...headers } },
      (response) => {
        let body = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (body += chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      },
    )
    request.on('error', reject)
    request.end(method === 'POST' ? '{}' : undefined)
  })
}

describe('every route', () => {
  test('is closed without the key, with the same answer for none and a wrong one', async () => {
    for (const path of [...paths, '/metrics', '/', '/unknown']) {
      const without = await call(path, {})
      expect([path, without.status]).toEqual([path, 401])
      expect(await call(path, { authorization: 'Bearer wrong' })).toEqual(without)
    }
  })

  test('is closed to other web pages and other names, even with the key', async () => {
    const authorization = `Bearer ${api.key}`
    for (const path of [...paths, '/metrics', '/healthz']) {
      expect((await call(path, { authorization, origin: 'http://evil.example' })).status).toBe(403)
      expect((await call(path, { authorization, host: 'evil.example' })).status).toBe(403)
    }
  })

  test('is closed over gRPC too', async () => {
    const agents = createClient(AgentService, createGrpcTransport({ baseUrl: api.url }))
    const failure = await agents.listAgents({}).catch((error: unknown) => error)
    expect(ConnectError.from(failure).code).toBe(Code.Unauthenticated)
  })

  test('health and readiness are public, and readiness follows Temporal', async () => {
    expect(await call('/healthz', {}, 'GET')).toEqual({ status: 200, body: 'ok\n' })
    expect((await call('/readyz', {}, 'GET')).status).toBe(200)
    api.temporal.down = new TuttiError('unavailable', 'Temporal does not answer.')
    expect((await call('/readyz', {}, 'GET')).status).toBe(503)
    api.temporal.down = undefined
  })
})

test('one port speaks HTTP/1.1 and HTTP/2, also when the first bytes come one by one', async () => {
  const session = http2.connect(api.url)
  const stream = session.request({ ':path': '/healthz', ':method': 'GET' })
  const status = await new Promise((resolve) =>
    stream.on('response', (headers) => resolve(headers[':status'])),
  )
  expect(status).toBe(200)
  session.close()
  const { port } = new URL(api.url)
  const socket = new Socket().connect(Number(port), '127.0.0.1').setNoDelay(true)
  const answer = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())))
  // POST begins like the preface of HTTP/2.
  for (const character of `POST /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Length: 0\r\n\r\n`) {
    await new Promise<void>((resolve) => socket.write(character, () => setImmediate(resolve)))
  }
  expect(await answer).toMatch(/^HTTP\/1\.1 200/)
  socket.destroy()
})

test('metrics have closed labels and count what happened', async () => {
  const files = createTestRepository({ 'a.txt': 'a\n' })
  await api.client(RepositoryService).addRepository({ path: files.path, name: 'demo' })
  const { agent } = await api
    .client(AgentService)
    .createAgent({ prompt: 'x', repository: { location: { case: 'registered', value: 'demo' } } })
  await expect(api.client(AgentService).getAgent({ bcId: 'bc-no' })).rejects.toThrow(/invalid_argument/)
  const { body } = await call('/metrics', { authorization: `Bearer ${api.key}` }, 'GET')
  expect(body).toContain('tutti_agents{status="RUNNING"} 1')
  expect(body).toContain('tutti_rpc_total{method="tutti.v1.AgentService/CreateAgent",code="ok"} 1')
  expect(body).toContain('tutti_rpc_total{method="tutti.v1.AgentService/GetAgent",code="InvalidArgument"} 1')
  expect(body).not.toContain(agent!.bcId)
  files.remove()
})

test('a message above the limit is refused, one at the limit is read', async () => {
  const path = `tutti.v1.AgentService/CreateAgent`
  const body = (bytes: number) => `{"prompt":"${'x'.repeat(bytes - 13)}"}`
  const over = await api.post(path, body((4 << 20) + 1))
  expect([over.status, await over.json()]).toMatchObject([429, { code: 'resource_exhausted' }])
  const at = await api.post(path, body(4 << 20))
  expect([at.status, await at.json()]).toMatchObject([400, { code: 'invalid_argument' }])
})
