import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'

/**
 * Listens on the sandbox's own loopback and passes every connection to the host's egress proxy. Programs know HTTP proxies, few know Unix
 * sockets. Returns the environment that makes them use it.
 */
export async function startEgressRelay(socketPath: string): Promise<Record<string, string>> {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ path: socketPath, allowHalfOpen: true })
    client.pipe(upstream)
    upstream.pipe(client)
    client.on('error', () => upstream.destroy())
    upstream.on('error', () => client.destroy())
  })
  server.unref()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const none = 'localhost,127.0.0.1,::1'
  return {
    HTTP_PROXY: address,
    HTTPS_PROXY: address,
    ALL_PROXY: address,
    NO_PROXY: none,
    http_proxy: address,
    https_proxy: address,
    all_proxy: address,
    no_proxy: none,
    // Node's own fetch and http listen to the variables above only when told to.
    NODE_USE_ENV_PROXY: '1',
  }
}
