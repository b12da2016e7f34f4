import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createTestBench, never, shell } from '../test-sandbox.ts'
import type { DeniedEgress } from './egress-proxy.ts'
import { openEgress } from './open-egress.ts'

test('a sandbox reaches the allowed host through its proxy, and nothing else', async () => {
  const target = createServer((request, response) => response.end(`${request.headers.host}${request.url}`))
  target.listen(0, '127.0.0.1')
  await once(target, 'listening')
  const { port } = target.address() as AddressInfo
  const denied: DeniedEgress[] = []
  const egress = await openEgress({
    allowHosts: ['api.example.com', 'inside.example.com'],
    resolve: async (name) => [name === 'inside.example.com' ? '127.0.0.1' : '93.184.215.14'],
    dial: () => connect({ host: '127.0.0.1', port }),
    onDenied: (entry) => denied.push(entry),
  })
  onTestFinished(() => egress.close())
  onTestFinished(() => void target.close())
  const bench = await createTestBench()
  onTestFinished(() => bench.dispose())
  const { server } = await bench.start({
    policy: { allowHosts: ['api.example.com'] },
    egressFolder: egress.folder,
  })

  const fetchOf = (url: string) =>
    shell(
      server,
      `/opt/node/bin/node -e 'fetch("${url}").then((r) => r.text()).then(console.log, () => console.log("failed"))'`,
    )
  expect((await fetchOf('http://api.example.com/path')).stdout).toBe('api.example.com/path\n')
  expect((await fetchOf('http://inside.example.com/')).stdout).toMatch(
    /does not let this sandbox reach|failed/,
  )
  expect((await fetchOf('http://other.example.com/')).stdout).toMatch(
    /does not let this sandbox reach|failed/,
  )
  expect((await fetchOf('https://other.example.com/')).stdout).toBe('failed\n')
  // Past the proxy there is no way at all: not to the host's loopback, and its socket cannot be replaced.
  expect(
    (
      await shell(
        server,
        `NODE_USE_ENV_PROXY= /opt/node/bin/node -e 'require("net").connect(${port}, "127.0.0.1").on("error", (e) => console.log(e.code))'`,
      )
    ).stdout,
  ).toBe('ECONNREFUSED\n')
  expect((await shell(server, 'rm /run/tutti/egress.sock 2>&1 || echo kept')).stdout).toContain('kept')
  expect(denied.map((entry) => `${entry.host}:${entry.port} ${entry.reason}`)).toEqual([
    'inside.example.com:80 private_address',
    'other.example.com:80 not_allowed',
    'other.example.com:443 not_allowed',
  ])
  await bench.dispose()
  await egress.close()
  expect(existsSync(egress.folder)).toBe(false)
  expect(await server.lost).toMatch(/exit code|signal/)
  await expect(server.exec({ argv: ['true'] }, never).next()).rejects.toMatchObject({ code: 'unavailable' })
})
