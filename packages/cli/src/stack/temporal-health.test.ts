import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import {
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestCertificates } from '@tutti/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporalProblem } from './temporal-health.ts'

let folder: string
let certificates: ReturnType<typeof createTestCertificates>
let server: Http2SecureServer
let address: string

/** A frontend that knows one key and one namespace. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-health-'))
  certificates = createTestCertificates(folder)
  const { cert, key } = certificates.server
  server = createSecureServer({ cert, key })
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const known = headers['authorization'] === 'Bearer right' && headers['temporal-namespace'] === 'mine'
    const status = known
      ? { 'grpc-status': '0' }
      : { 'grpc-status': '7', 'grpc-message': 'Request%20unauthorized.' }
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...status }, { endStream: true })
  })
  server.on('sessionError', () => {})
  server.listen(0, 'localhost')
  await once(server, 'listening')
  address = `localhost:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

const ask = (access: Parameters<typeof temporalProblem>[0]['access'], to = address) =>
  temporalProblem({ address: to, namespace: 'mine', access }, 5000)
const trusted = () => ({ serverRootCACertificate: certificates.authority.cert })

test('answers over TLS, with the key and the namespace', async () => {
  expect(await ask({ tls: trusted(), apiKey: 'right' })).toBeUndefined()
})

test('a refusal is told in the words of the cluster', async () => {
  expect(await ask({ tls: trusted(), apiKey: 'wrong' })).toBe('Request unauthorized. (gRPC status 7)')
})

test('an unknown authority, a wrong name and a bad file each have their words', async () => {
  expect(await ask({ tls: true, apiKey: 'right' })).toMatch(/certificate/)
  expect(await ask({ tls: { ...trusted(), serverNameOverride: 'other' } })).toMatch(/altnames|does not match/)
  expect(await ask({ tls: { serverRootCACertificate: Buffer.from('no PEM') } })).toMatch(/certificate|PEM/i)
})

test('neither TLS where there must be some, nor nobody at all, makes it wait', async () => {
  expect(await ask({})).toMatch(/closed|hang up|reset|error/i)
  expect(await ask({}, '127.0.0.1:1')).toMatch(/ECONNREFUSED/)
  expect(await ask({}, 'not an address')).toMatch(/Invalid URL/)
})
