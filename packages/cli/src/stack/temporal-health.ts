import { connect } from 'node:http2'

/**
 * Whether a Temporal frontend answers for the namespace: one gRPC call (DescribeNamespace) written by hand, because a start
 * polls it and a client library takes longer to load than the server to start.
 */
export function isTemporalHealthy(address: string, namespace: string, timeoutMs = 1000): Promise<boolean> {
  return new Promise((resolve) => {
    const session = connect(`http://${address}`)
    const end = (healthy: boolean) => {
      clearTimeout(timer)
      session.destroy()
      resolve(healthy)
    }
    const timer = setTimeout(() => end(false), timeoutMs)
    session.once('error', () => end(false))
    const request = session.request({
      ':method': 'POST',
      ':path': '/temporal.api.workflowservice.v1.WorkflowService/DescribeNamespace',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    request.once('error', () => end(false))
    request.once('response', (headers) => {
      if (headers['grpc-status'] !== undefined) end(headers['grpc-status'] === '0')
    })
    request.once('trailers', (trailers) => end(trailers['grpc-status'] === '0'))
    request.resume()
    request.end(frame(namespace))
  })
}

/** `DescribeNamespaceRequest{namespace}` in its gRPC frame. Names are far below 128 bytes, so each length is one byte. */
function frame(namespace: string): Buffer {
  const name = Buffer.from(namespace)
  const message = Buffer.concat([Buffer.from([0x0a, name.length]), name])
  return Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message])
}
