import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { TuttiError, errorCodes } from '@tutti/core'

import { localOwner, type ApiDeps } from './api-deps.ts'
import { createBlobRoutes } from './blobs/create-blob-routes.ts'
import { createErrorInterceptor, createValidateInterceptor } from './interceptors.ts'
import { admitRequest, assertMayListen, type Caller } from './request-guard.ts'
import { createRequestRules } from './request-rules.ts'
import { apiServices, createRoutes } from './routes.ts'
import { createRpcHandler } from './rpc-handler.ts'
import { createSharedPort } from './shared-port.ts'
import { blobSweepMs, firstBlobSweepMs, sweepBlobs } from './sweep-blobs.ts'
import { expirySweepMs, sweepExpired } from './sweep-expired.ts'
import { logSweepMs, sweepLogs } from './sweep-logs.ts'
import { sweepPeriodically } from './sweep-periodically.ts'
import { startSweepMs, sweepStarting } from './sweep-starting.ts'
import { traceGateway } from './tracing.ts'
import { toConnectError } from './tutti-error-to-connect.ts'

export interface ApiServer {
  /**
   * Begins to answer. Port 0 takes a free one.
   * @throws TuttiError `failed_precondition` beyond loopback without API keys (names the setting) or when the port is taken.
   */
  listen(options: { readonly host: string; readonly port: number }): Promise<void>
  /** Where it listens. @throws TuttiError `failed_precondition` before {@link listen}. */
  address(): { readonly host: string; readonly port: number; readonly url: string }
  /** From now on `/readyz` says no, so that nothing new is sent here; calls are still answered. */
  drain(): void
  /** Ends streams, lets calls that are under way finish for a moment, and closes all connections. Idempotent. */
  close(): Promise<void>
}

/** The public API: Connect, gRPC-Web and gRPC on one port, with `/blobs/`, `/healthz`, `/readyz` and `/metrics` beside them. */
export function createApiServer(deps: ApiDeps): ApiServer {
  const { log, metrics, config } = deps
  const traced = { ...deps, temporal: traceGateway(deps.temporal) }
  const shutdown = new AbortController()
  const apiKeys = config['server.api_keys']
    .split(',')
    .map((key) => key.trim())
    .filter((key) => key !== '')
  const rules = createRequestRules()
  const rpc = createRpcHandler({
    interceptors: [createErrorInterceptor({ log, metrics }), createValidateInterceptor(rules)],
    shutdown: shutdown.signal,
    routes: createRoutes(traced),
    onFailure: (method, err) => log.warn({ method, err }, 'answer cut off'),
  })
  const blobs = createBlobRoutes(deps, shutdown.signal)
  const port = createSharedPort((request, response) => void handle(request, response))
  let stopSweeps: readonly (() => Promise<void>)[] = []
  let draining = false
  let listening: { host: string; port: number } | undefined

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now()
    const path = (request.url ?? '').split('?', 1)[0] ?? ''
    response.once('close', () => {
      const ms = Math.round(performance.now() - started)
      log.info({ verb: request.method, path: path.slice(0, 200), status: response.statusCode, ms }, 'request')
    })
    try {
      const caller = admit(request, path)
      const answer = caller && rpc(path)
      if (answer) {
        if (request.headers.expect !== undefined) response.writeContinue()
        return await answer(request, response as Parameters<typeof answer>[1], caller)
      }
      const blob = caller && blobs(path)
      if (blob) return await blob(request, response, caller)
      await answerPlain(path, response)
    } catch (error) {
      refuse(response, TuttiError.from(error))
    }
  }

  function admit(request: IncomingMessage, path: string): Caller | undefined {
    const authority = request.headers[':authority']
    return admitRequest(
      {
        localKey: deps.localKey,
        apiKeys,
        owner: localOwner,
        ...(listening ?? { host: '127.0.0.1', port: 0 }),
      },
      {
        path,
        host: typeof authority === 'string' ? authority : request.headers.host,
        origin: request.headers.origin,
        authorization: request.headers.authorization,
        remoteAddress: request.socket.remoteAddress,
      },
    )
  }

  async function answerPlain(path: string, response: ServerResponse): Promise<void> {
    switch (path) {
      case '/healthz':
        return send(response, 200, 'text/plain', 'ok\n')
      case '/readyz':
        if (draining) throw new TuttiError('unavailable', 'The server is going down.')
        await deps.temporal.ready(AbortSignal.any([shutdown.signal, AbortSignal.timeout(2000)]))
        return send(response, 200, 'text/plain', 'ready\n')
      case '/metrics':
        return send(response, 200, metrics.registry.contentType, await metrics.registry.metrics())
      default:
        throw new TuttiError('not_found', 'There is nothing at this path.')
    }
  }

  return {
    async listen({ host, port: wanted }) {
      assertMayListen(host, apiKeys)
      await new Promise<void>((resolve, reject) => {
        port.server.once('error', (cause: NodeJS.ErrnoException) => {
          const message =
            cause.code === 'EADDRINUSE'
              ? `Port ${wanted} is taken. Choose another with --port.`
              : `Cannot listen on ${host}.`
          reject(new TuttiError('failed_precondition', message, { host, port: wanted }, cause))
        })
        // Known before the first connection, so that its Host can be checked.
        port.server.once('listening', () => {
          listening = { host, port: (port.server.address() as AddressInfo).port }
          resolve()
        })
        port.server.listen(wanted, host)
      })
      const requests = apiServices.flatMap(({ methods }) => methods.map(({ input }) => input))
      void rules
        .prepare(requests, shutdown.signal)
        .catch((err: unknown) => log.warn({ err }, 'preparing the rules of requests failed'))
      stopSweeps = [
        sweepPeriodically(deps, startSweepMs, sweepStarting),
        sweepPeriodically(deps, expirySweepMs(config['agent.retention']), sweepExpired),
        sweepPeriodically(deps, logSweepMs, sweepLogs),
        sweepPeriodically(deps, blobSweepMs, removeBlobs, firstBlobSweepMs),
      ]
    },
    address() {
      if (!listening) throw new TuttiError('failed_precondition', 'The server does not listen yet.')
      const name = listening.host.includes(':') ? `[${listening.host}]` : listening.host
      return { ...listening, url: `http://${name}:${listening.port}` }
    },
    drain() {
      draining = true
    },
    async close() {
      draining = true
      shutdown.abort(
        toConnectError(
          new TuttiError('unavailable', 'The server is going down; resume from the last offset.'),
        ),
      )
      await Promise.all(stopSweeps.map((stop) => stop()))
      if (listening) await port.close()
    },
  }
}

async function removeBlobs(deps: ApiDeps, signal: AbortSignal): Promise<void> {
  const swept = await sweepBlobs(deps, false, signal)
  if (swept.removed > 0) deps.log.info(swept, 'blobs removed')
}

function refuse(response: ServerResponse, error: TuttiError): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const { http, connect } = errorCodes[error.code]
  send(response, http, 'application/json', JSON.stringify({ code: connect, message: error.message }))
}

function send(response: ServerResponse, status: number, type: string, text: string): void {
  response.writeHead(status, {
    'content-type': type,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  })
  response.end(text)
}
