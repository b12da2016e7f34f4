import {
  connect,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
  type SecureClientSessionOptions,
} from 'node:http2'
import type { TemporalAccess } from '@tutti/worker'

/** Whether a Temporal frontend answers for the namespace; see {@link temporalProblem}. */
export const isTemporalHealthy = async (
  address: string,
  namespace: string,
  timeoutMs = 1000,
): Promise<boolean> => (await temporalProblem({ address, namespace, access: {} }, timeoutMs)) === undefined

/**
 * Why a Temporal frontend does not answer for the namespace; undefined when it does: one gRPC call (DescribeNamespace) written by
 * hand, because a start polls it and a client library takes longer to load than the server to start.
 */
export function temporalProblem(
  {
    address,
    namespace,
    access,
  }: { readonly address: string; readonly namespace: string; readonly access: TemporalAccess },
  timeoutMs: number,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    let session: ClientHttp2Session | undefined
    const end = (problem: string | undefined) => {
      clearTimeout(timer)
      session?.destroy()
      resolve(problem)
    }
    const fail = (error: unknown) => end(wordsOf(error))
    const answered = (headers: IncomingHttpHeaders & IncomingHttpStatusHeader) => {
      const status = headers['grpc-status']
      const http = headers[':status']
      if (status !== undefined) end(status === '0' ? undefined : messageOf(headers))
      else if (http !== undefined && http !== 200) end(`it answered with the HTTP status ${http}`)
    }
    const timer = setTimeout(() => end(`no answer within ${timeoutMs / 1000} s`), timeoutMs)
    try {
      session = connect(`${access.tls ? 'https' : 'http'}://${address}`, tlsOptions(access))
      session.once('error', fail)
      // Without TLS where there must be some, and the other way round, the other side just hangs up.
      session.once('close', () => end('it closed the connection without an answer'))
      const request = session.request({
        ...access.metadata,
        ...(access.apiKey !== undefined && { authorization: `Bearer ${access.apiKey}` }),
        'temporal-namespace': namespace,
        ':method': 'POST',
        ':path': '/temporal.api.workflowservice.v1.WorkflowService/DescribeNamespace',
        'content-type': 'application/grpc',
        te: 'trailers',
      })
      request.once('error', fail)
      request.once('response', answered)
      request.once('trailers', answered)
      request.resume()
      request.end(frame(namespace))
    } catch (error) {
      fail(error)
    }
  })
}

function tlsOptions({ tls }: TemporalAccess): SecureClientSessionOptions {
  if (typeof tls !== 'object') return {}
  const { serverNameOverride, serverRootCACertificate: ca, clientCertPair: pair } = tls
  return {
    ...(serverNameOverride && { servername: serverNameOverride }),
    ...(ca && { ca: Buffer.from(ca) }),
    ...(pair && { cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) }),
  }
}

function messageOf(headers: IncomingHttpHeaders): string {
  const text = one(headers['grpc-message'])
  const status = `gRPC status ${one(headers['grpc-status'])}`
  if (text === '') return status
  try {
    return `${decodeURIComponent(text)} (${status})`
  } catch {
    return `${text} (${status})`
  }
}

const one = (value: string | string[] | undefined): string => [value ?? ''].flat().join(', ')

/** Node's own text of a refused certificate or connection; of several addresses that were tried, the last one's. */
function wordsOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return wordsOf(error.errors.at(-1))
  return error instanceof Error ? error.message || error.name : String(error)
}

/** `DescribeNamespaceRequest{namespace}` in its gRPC frame. Names are far below 128 bytes, so each length is one byte. */
function frame(namespace: string): Buffer {
  const name = Buffer.from(namespace)
  const message = Buffer.concat([Buffer.from([0x0a, name.length]), name])
  return Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message])
}
