import { once } from 'node:events'
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Transform } from 'node:stream'
import type { Fault } from './fault.ts'

export interface ProxiedRequest {
  readonly method: string
  /** With the query, as it came. */
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly fault: Fault | undefined
}

/** An HTTP proxy on loopback in front of one server, that does to requests what it is told. */
export interface FaultProxy {
  readonly endpoint: string
  /** In the order in which they came. */
  readonly requests: readonly ProxiedRequest[]
  /** The next requests that fit, as many as `times` (default one), get this fault. Earlier calls go first. */
  fail(fault: Fault, options?: { times?: number; when?: (request: ProxiedRequest) => boolean }): void
  /** Resolves with the next request that gets a fault. */
  nextFault(): Promise<ProxiedRequest>
  close(): Promise<void>
}

export interface FaultProxyOptions {
  /** For a server that answers to its own name only. Default: the `Host` header goes through as it is, since clients of S3 sign it. */
  readonly namesTarget?: boolean
}

/** @param target `http://HOST:PORT`. */
export async function createFaultProxy(
  target: string,
  { namesTarget = false }: FaultProxyOptions = {},
): Promise<FaultProxy> {
  const { hostname, port, host } = new URL(target)
  const plans: { fault: Fault; left: number; when: (request: ProxiedRequest) => boolean }[] = []
  const requests: ProxiedRequest[] = []
  const sockets = new Set<Socket>()
  let faulted = Promise.withResolvers<ProxiedRequest>()

  const server = createServer((near, answer) => {
    const seen = { method: near.method ?? '', url: near.url ?? '', headers: near.headers }
    const plan = plans.find(({ left, when }) => left > 0 && when({ ...seen, fault: undefined }))
    if (plan) plan.left -= 1
    const request = { ...seen, fault: plan?.fault }
    requests.push(request)
    if (plan) {
      faulted.resolve(request)
      faulted = Promise.withResolvers()
    }
    void serve(near, answer, plan?.fault)
  })

  async function serve(
    near: IncomingMessage,
    answer: ServerResponse,
    fault: Fault | undefined,
  ): Promise<void> {
    near.on('error', () => {})
    answer.on('error', () => {})
    const reset = () => near.socket.resetAndDestroy()
    if (fault?.kind === 'refuse') return void reset()
    if (fault?.kind === 'black_hole') return void near.resume()
    if (fault?.kind === 'error') return sendError(near, answer, fault)
    if (fault?.kind === 'hold') await fault.until

    const headers = rawPairs(near.rawHeaders)
      .filter(([name]) => !/^(?:expect|connection)$/i.test(name))
      .map(([name, value]) => [name, namesTarget && /^host$/i.test(name) ? host : value])
    const far = forward({
      hostname,
      port,
      method: near.method,
      path: near.url,
      headers: headers.flat(),
      agent: false,
    })
    const drop = () => {
      far.destroy()
      reset()
    }
    // Either side's end is the other's: a client that goes away must not keep the server waiting.
    answer.on('close', () => far.destroy())
    far.on('error', () => void reset())
    near
      .pipe(
        watched({
          corruptAt: fault?.kind === 'corrupt_request' ? fault.atByte : undefined,
          ...at(fault, 'reset_request', drop),
        }),
      )
      .pipe(far)
    far.on('response', (back) => {
      back.on('error', () => void reset())
      if (fault?.kind === 'lost_answer') {
        back.resume()
        back.on('end', drop)
        return
      }
      const copy: Buffer[] = []
      answer.writeHead(back.statusCode ?? 502, back.statusMessage, rawPairs(back.rawHeaders).flat())
      const through = watched({
        corruptAt: fault?.kind === 'corrupt_answer' ? fault.atByte : undefined,
        ...at(fault, 'reset_answer', drop),
        ...at(fault, 'stall_answer', () => {}),
      })
      if (fault?.kind === 'duplicate_answer') {
        back.on('data', (bytes: Buffer) => copy.push(bytes))
        answer.on('finish', () => near.socket.write(Buffer.concat([head(back), ...copy])))
      }
      back.pipe(through).pipe(answer)
    })
  }

  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    fail: (fault, { times = 1, when = () => true } = {}) => void plans.push({ fault, left: times, when }),
    nextFault: () => faulted.promise,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function sendError(
  near: IncomingMessage,
  answer: ServerResponse,
  { status, code }: Extract<Fault, { kind: 'error' }>,
): void {
  near.resume()
  // Not before the request has come: a client that still sends may take an early answer for a broken connection.
  near.on('end', () => {
    answer.writeHead(status, { 'content-type': 'application/xml' })
    const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>made by a test</Message></Error>`
    answer.end(near.method === 'HEAD' ? undefined : body)
  })
}

/** The limit of a fault that ends after so many bytes. */
function at(
  fault: Fault | undefined,
  kind: 'reset_request' | 'reset_answer' | 'stall_answer',
  then: () => void,
) {
  return fault?.kind === kind ? { cutAt: fault.afterBytes, onCut: then } : {}
}

/** Passes bytes on, changes one, and from the cut on keeps them. */
function watched(plan: { corruptAt: number | undefined; cutAt?: number; onCut?: () => void }): Transform {
  let position = 0
  let cut = false
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const start = position
      position += chunk.length
      const { corruptAt, cutAt, onCut } = plan
      if (cut) return done()
      if (corruptAt !== undefined && corruptAt >= start && corruptAt < position) {
        const changed = Buffer.from(chunk)
        changed[corruptAt - start]! ^= 0xff
        return done(null, changed)
      }
      if (cutAt === undefined || position < cutAt) return done(null, chunk)
      cut = true
      // What stands before the cut has to be on its way first.
      this.push(chunk.subarray(0, cutAt - start))
      setImmediate(() => onCut?.())
    },
  })
}

function rawPairs(raw: readonly string[]): [string, string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index]!, raw[2 * index + 1]!])
}

function head(back: IncomingMessage): Buffer {
  const lines = rawPairs(back.rawHeaders).map(([name, value]) => `${name}: ${value}`)
  return Buffer.from(`HTTP/1.1 ${back.statusCode} ${back.statusMessage}\r\n${lines.join('\r\n')}\r\n\r\n`)
}
