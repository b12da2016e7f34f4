import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { TuttiError } from '@tutti/core'
import type { Registry } from 'prom-client'

const loopback = '127.0.0.1'

/**
 * `/metrics`, `/healthz` and `/readyz` of a worker that has no API beside it, on loopback. Answers any Host but only these three
 * GETs, which name no agent and no owner.
 *
 * @throws TuttiError `failed_precondition` when the port is taken.
 */
export async function serveMetrics(
  registry: Registry,
  port: number,
  ready: () => boolean,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    const send = (status: number, type: string, text: string) => {
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
    }
    if (request.method !== 'GET') return send(405, 'text/plain', 'GET only\n')
    switch (request.url) {
      case '/healthz':
        return send(200, 'text/plain', 'ok\n')
      case '/readyz':
        return ready() ? send(200, 'text/plain', 'ready\n') : send(503, 'text/plain', 'draining\n')
      case '/metrics':
        void registry.metrics().then(
          (text) => send(200, registry.contentType, text),
          () => send(500, 'text/plain', 'the metrics could not be read\n'),
        )
        return
      default:
        return send(404, 'text/plain', 'There is nothing at this path.\n')
    }
  })
  server.listen(port, loopback)
  // The worker keeps the process; this page alone does not.
  server.unref()
  try {
    await once(server, 'listening')
  } catch (cause) {
    throw new TuttiError(
      'failed_precondition',
      `Port ${port} of worker.metrics_port is taken. Set another one, or 0 for none.`,
      { setting: 'worker.metrics_port' },
      cause,
    )
  }
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
