import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { TestCertificate } from './test-certificates.ts'

export interface TlsProxy {
  /** `localhost:PORT`. */
  readonly address: string
  close(): Promise<void>
}

/** TLS in front of a gRPC server without it; whoever connects must show a certificate of the authority. */
export async function startTlsProxy(
  target: string,
  { authority, server: own }: Record<'authority' | 'server', TestCertificate>,
): Promise<TlsProxy> {
  const [host, port] = target.split(':')
  const open = new Set<Socket | TLSSocket>()
  const server = createServer(
    {
      cert: own.cert,
      key: own.key,
      ca: authority.cert,
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ['h2'],
    },
    (near) => {
      const far = connect(Number(port), host)
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        open.add(socket)
        socket.on('error', () => other.destroy())
        socket.on('close', () => {
          open.delete(socket)
          other.destroy()
        })
        socket.pipe(other)
      }
    },
  )
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.listen(0, 'localhost')
  await once(server, 'listening')
  return {
    address: `localhost:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of open) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
