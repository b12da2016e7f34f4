import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TuttiError } from '@tutti/core'
import { isPublicAddress } from '@tutti/git'
import { parseHostRules, plainName } from './host-rules.ts'

/** A connection that was refused, for the agent's log. */
export interface DeniedEgress {
  readonly host: string
  readonly port: number
  readonly reason: 'not_allowed' | 'private_address' | 'unresolved' | 'bad_request'
}

export interface EgressProxyOptions {
  /** Made by the proxy, at most 107 bytes long. Its folder is what a sandbox gets mounted. */
  readonly socketPath: string
  /** As in `--allow-host`. */
  readonly allowHosts: readonly string[]
  readonly onDenied?: (denied: DeniedEgress) => void
  /** All addresses of a name. Default: the system's resolver. */
  readonly resolve?: (name: string) => Promise<readonly string[]>
  /** Opens a connection to a checked address. Default: TCP. */
  readonly dial?: (address: string, port: number) => Socket
}

export interface EgressProxy {
  readonly socketPath: string
  /** Ends every connection and removes the socket. */
  close(): Promise<void>
}

const connectTimeoutMs = 10_000
const maxConnections = 256
/** sun_path of Linux, without the final NUL. */
const maxSocketPathBytes = 107

/**
 * The only way out of a sandbox with allowed hosts: an HTTP proxy on a Unix socket, on the host. It allows names, resolves each once itself,
 * refuses addresses that are not public whatever the name, and connects to the address that it checked (design §3).
 *
 * @throws TuttiError `invalid_argument` for rules that are none or a socket path that is too long.
 */
export async function createEgressProxy(options: EgressProxyOptions): Promise<EgressProxy> {
  const { socketPath, onDenied } = options
  const isAllowed = parseHostRules(options.allowHosts)
  const resolve = options.resolve ?? resolveAll
  const dial = options.dial ?? ((address, port) => connect({ host: address, port }))
  if (Buffer.byteLength(socketPath) > maxSocketPathBytes) {
    throw new TuttiError(
      'invalid_argument',
      `The socket path ${socketPath} is longer than ${maxSocketPathBytes} bytes.`,
      {
        path: socketPath,
      },
    )
  }
  const open = new Set<Duplex>()
  const track = (socket: Duplex) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  }

  /** The checked address of an allowed target, or why there is none. */
  async function admit(
    host: string,
    port: number,
  ): Promise<{ address: string } | { denied: DeniedEgress['reason'] }> {
    const name = plainName(host)
    if (name === '' || !isAllowed(name, port)) return { denied: 'not_allowed' }
    const addresses = await resolve(name).catch(() => [])
    if (addresses.length === 0) return { denied: 'unresolved' }
    // One private address among public ones is how a name is made to point inside: then none is used.
    if (!addresses.every(isPublicAddress)) return { denied: 'private_address' }
    return { address: addresses[0]! }
  }
  const deny = (host: string, port: number, reason: DeniedEgress['reason']): string => {
    onDenied?.({ host, port, reason })
    return `Tutti does not let this sandbox reach ${host}:${port} (${reason}). Allow it with --allow-host.\n`
  }

  async function tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    track(client)
    client.on('error', () => client.destroy())
    const target = /^([^:/@?#\s[\]]+):(\d{1,5})$/.exec(request.url ?? '')
    const [host, port] = target ? [target[1]!, Number(target[2])] : [request.url ?? '', 0]
    const admitted = target ? await admit(host, port) : { denied: 'bad_request' as const }
    if ('denied' in admitted) {
      const text = deny(host, port, admitted.denied)
      client.end(
        `HTTP/1.1 403 Forbidden\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
      )
      return
    }
    const upstream = dial(admitted.address, port)
    track(upstream)
    upstream.setTimeout(connectTimeoutMs, () => upstream.destroy(new Error('timeout')))
    upstream.once('connect', () => {
      upstream.setTimeout(0)
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      if (head.length > 0) upstream.write(head)
      client.pipe(upstream)
      upstream.pipe(client)
    })
    upstream.on('error', () => client.end('HTTP/1.1 502 Bad Gateway\r\nConnection: close\r\n\r\n'))
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => client.end())
  }

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = parseTarget(request.url)
    const host = url?.hostname ?? request.url ?? ''
    const port = Number(url?.port || 80)
    const admitted = url ? await admit(host, port) : { denied: 'bad_request' as const }
    if ('denied' in admitted) {
      response.writeHead(403, { 'content-type': 'text/plain', connection: 'close' })
      response.end(deny(host, port, admitted.denied))
      return
    }
    const upstream = httpRequest({
      method: request.method,
      path: `${url!.pathname}${url!.search}`,
      headers: { ...endToEnd(request.headers), host: url!.host },
      createConnection: () => dial(admitted.address, port),
      timeout: connectTimeoutMs,
    })
    upstream.on('timeout', () => upstream.socket?.connecting && upstream.destroy())
    upstream.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers))
      answer.pipe(response)
    })
    upstream.on('error', () => {
      if (!response.headersSent) response.writeHead(502)
      response.end()
    })
    response.on('close', () => upstream.destroy())
    request.pipe(upstream)
  }

  const server = createServer((request, response) => void forward(request, response))
  server.on('connect', (request, client, head) => void tunnel(request, client, head))
  server.on('connection', track)
  server.maxConnections = maxConnections
  await rm(socketPath, { force: true })
  server.listen(socketPath)
  await once(server, 'listening')

  return {
    socketPath,
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
      await rm(socketPath, { force: true })
    },
  }
}

async function resolveAll(name: string): Promise<string[]> {
  const found = await lookup(name, { all: true })
  return found.map((entry) => entry.address)
}

/** Only the absolute form of a plain request to a proxy; no user info, which would hide the real host from a reader. */
function parseTarget(text: string | undefined): URL | undefined {
  if (text === undefined || !URL.canParse(text)) return undefined
  const url = new URL(text)
  return url.protocol === 'http:' && url.username === '' && url.password === '' ? url : undefined
}

const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
])

function endToEnd(headers: IncomingMessage['headers']): Record<string, string | string[]> {
  const named = new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()))
  return Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string | string[]] =>
        entry[1] !== undefined && !hopByHop.has(entry[0]) && !named.has(entry[0]),
    ),
  )
}
