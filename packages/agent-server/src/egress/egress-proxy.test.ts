import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { createEgressProxy, type DeniedEgress } from './egress-proxy.ts'
import { parseHostRules } from './host-rules.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const publicAddress = '93.184.215.14'

async function setUp(allowHosts: string[], addresses: Record<string, string[]>) {
  const target = createServer((incoming, response) => {
    response.end(`${incoming.method} ${incoming.headers.host} ${incoming.url}`)
  })
  target.listen(0, '127.0.0.1')
  await once(target, 'listening')
  cleanups.push(() => target.close())
  const folder = mkdtempSync(join(tmpdir(), 'tutti-egress-'))
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  const denied: DeniedEgress[] = []
  const dialled: string[] = []
  const proxy = await createEgressProxy({
    socketPath: join(folder, 'egress.sock'),
    allowHosts,
    resolve: async (name) => addresses[name] ?? [],
    dial(address, port) {
      dialled.push(`${address}:${port}`)
      return connect({ host: '127.0.0.1', port: (target.address() as AddressInfo).port })
    },
    onDenied: (entry) => denied.push(entry),
  })
  cleanups.push(() => proxy.close())
  return { proxy, denied, dialled }
}

async function tunnelTo(socketPath: string, target: string): Promise<{ status: number; body: string }> {
  const outgoing = request({ socketPath, method: 'CONNECT', path: target })
  outgoing.end()
  const [response, socket, head] = (await once(outgoing, 'connect')) as [
    { statusCode: number },
    NodeJS.Socket,
    Buffer,
  ]
  if (response.statusCode !== 200) {
    socket.end()
    return { status: response.statusCode, body: head.toString() }
  }
  socket.write('GET /through HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n')
  let body = ''
  for await (const chunk of socket as unknown as AsyncIterable<Buffer>) body += chunk
  return { status: 200, body }
}

async function plainGet(socketPath: string, url: string): Promise<{ status: number; body: string }> {
  const outgoing = request({
    socketPath,
    path: url,
    headers: { host: 'lies.example', 'proxy-authorization': 'x' },
  })
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [AsyncIterable<Buffer> & { statusCode: number }]
  let body = ''
  for await (const chunk of response) body += chunk
  return { status: response.statusCode, body }
}

test('lets an allowed name through, to the address that was checked', async () => {
  const { proxy, dialled } = await setUp(['api.example.com'], { 'api.example.com': [publicAddress] })
  expect((await tunnelTo(proxy.socketPath, 'API.example.com.:443')).body).toContain('GET t /through')
  expect(await plainGet(proxy.socketPath, 'http://api.example.com/a?b=c')).toEqual({
    status: 200,
    body: 'GET api.example.com /a?b=c',
  })
  expect(dialled).toEqual([`${publicAddress}:443`, `${publicAddress}:80`])
})

test('refuses what is not listed, other ports, addresses and malformed targets, and reports each', async () => {
  const { proxy, denied, dialled } = await setUp(['example.com', '*.wild.example:8443'], {
    'other.example': [publicAddress],
    'example.com': [publicAddress],
    'a.wild.example': [publicAddress],
  })
  const refused = [
    'other.example:443',
    'example.com:22',
    'sub.example.com:443',
    'wild.example:8443',
    'a.wild.example:443',
    `${publicAddress}:443`,
    '127.0.0.1:443',
    '0x7f.1:80',
    '[::1]:443',
    'u@example.com:443',
    'evil-example.com:443',
  ]
  const statuses = await Promise.all(refused.map((target) => tunnelTo(proxy.socketPath, target)))
  expect(statuses.map((answer) => answer.status)).toEqual(refused.map(() => 403))
  expect((await plainGet(proxy.socketPath, 'http://example.com@other.example/')).status).toBe(403)
  expect((await plainGet(proxy.socketPath, 'https://example.com/')).status).toBe(403)
  expect((await plainGet(proxy.socketPath, '/relative')).status).toBe(403)
  expect((await tunnelTo(proxy.socketPath, 'a.wild.example:8443')).status).toBe(200)
  expect(denied).toHaveLength(refused.length + 3)
  expect(denied).toContainEqual({ host: 'other.example', port: 443, reason: 'not_allowed' })
  expect(dialled).toEqual([`${publicAddress}:8443`])
})

test('refuses an allowed name that resolves to nothing or, even among others, to a private address', async () => {
  const { proxy, denied, dialled } = await setUp(['*.example.com'], {
    'private.example.com': ['10.0.0.1'],
    'mixed.example.com': [publicAddress, '169.254.169.254'],
    'mapped.example.com': ['::ffff:7f00:1'],
  })
  for (const name of ['private', 'mixed', 'mapped', 'missing']) {
    expect((await tunnelTo(proxy.socketPath, `${name}.example.com:443`)).status).toBe(403)
  }
  expect(denied.map((entry) => entry.reason)).toEqual([
    'private_address',
    'private_address',
    'private_address',
    'unresolved',
  ])
  expect(dialled).toEqual([])
})

test('takes only host names as rules', () => {
  for (const entry of [
    '*',
    '10.0.0.1',
    '[::1]',
    'a b',
    'x:99999',
    'https://example.com',
    '',
    '*.',
    '2130706433',
  ]) {
    expect(() => parseHostRules([entry])).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  }
  const rules = parseHostRules(['Bücher.example'])
  expect(rules('xn--bcher-kva.example', 443)).toBe(true)
})
