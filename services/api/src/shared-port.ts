import * as http from 'node:http'
import * as http2 from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'

/** The first bytes of every HTTP/2 connection (RFC 9113 §3.4). */
const preface = Buffer.from('PRI * HTTP/2.0')
/** Enough to tell: no HTTP/1 method begins like this. */
const tellingBytes = 3
/** A connection that says nothing is not kept. */
const firstBytesWithinMs = 10_000
/** Room for streams to say goodbye before their sockets are closed. */
const closeGraceMs = 500

/**
 * HTTP/1.1 and HTTP/2 without TLS (h2c) on one port, told apart by the first bytes, so that Connect and gRPC need no second one.
 * `close` stops accepting, waits a moment for what is under way, then ends all connections.
 */
export function createSharedPort(handler: http.RequestListener): {
  readonly server: Server
  close(): Promise<void>
} {
  // Header lines up to 64 KiB: HTTP/2 allows the same, and a long one is answered instead of cut off.
  const http1 = http.createServer({ maxHeaderSize: 64 << 10, requestTimeout: 0 }, handler)
  const http2Server = http2.createServer(
    {},
    handler as unknown as (req: http2.Http2ServerRequest, res: http2.Http2ServerResponse) => void,
  )
  // Whoever asks before it sends a body is answered first: it may be refused, or sent elsewhere.
  http1.on('checkContinue', handler)
  http2Server.on('checkContinue', handler as unknown as (req: http2.Http2ServerRequest) => void)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    socket.setTimeout(firstBytesWithinMs, () => socket.destroy())
    whenTold(socket, (isHttp2) => {
      socket.setTimeout(0)
      socket.removeAllListeners('timeout')
      if (isHttp2) http2Server.emit('connection', socket)
      else http1.emit('connection', socket)
    })
  })
  const sessions = new Set<http2.ServerHttp2Session>()
  http2Server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })
  http2Server.on('sessionError', () => undefined)

  return {
    server,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const session of sessions) session.close()
      http1.closeIdleConnections()
      const timer = setTimeout(() => sockets.forEach((socket) => socket.destroy()), closeGraceMs)
      await closed
      clearTimeout(timer)
    },
  }
}

function whenTold(socket: Socket, told: (isHttp2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0)
  const look = () => {
    const chunk = socket.read() as Buffer | null
    if (chunk) seen = Buffer.concat([seen, chunk])
    const length = Math.min(seen.length, preface.length)
    const isPrefix = seen.subarray(0, length).equals(preface.subarray(0, length))
    if (isPrefix && seen.length < tellingBytes) {
      socket.once('readable', look)
      return
    }
    socket.unshift(seen)
    told(isPrefix)
  }
  socket.once('readable', look)
}
