import {
  createConnectRouter,
  createContextValues,
  type ConnectRouter,
  type Interceptor,
} from '@connectrpc/connect'
import {
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node'
import type { UniversalHandler, UniversalServerRequest } from '@connectrpc/connect/protocol'
import { limits, type TuttiError } from '@tutti/core'

import { callerKey, problemKey } from './call-context.ts'
import { mergeChunks } from './merge-chunks.ts'
import type { Caller } from './request-guard.ts'
import { requestProblem } from './request-problem.ts'
import { toConnectError } from './tutti-error-to-connect.ts'

type NodeRequest = Parameters<typeof universalRequestFromNodeRequest>[0]
type NodeResponse = Parameters<typeof universalResponseToNodeResponse>[1]

/** Flags byte and length in front of each message of a stream. */
const envelopeBytes = 5

export interface RpcHandlerOptions {
  readonly interceptors: Interceptor[]
  readonly shutdown: AbortSignal
  readonly routes: (router: ConnectRouter) => void
  /** Something failed after an answer had begun. */
  readonly onFailure: (method: string, error: unknown) => void
}

/** Answers one request for a path of our services; undefined for any other path. */
export type RpcHandler = (
  path: string,
) => ((request: NodeRequest, response: NodeResponse, caller: Caller) => Promise<void>) | undefined

/**
 * Connect, gRPC-Web and gRPC for all services. The request message is read and looked at before the library parses it, since its own
 * complaints lack the path of a JSON key; the limit of {@link limits.maxMessageBytes} stays the library's.
 */
export function createRpcHandler({
  interceptors,
  shutdown,
  routes,
  onFailure,
}: RpcHandlerOptions): RpcHandler {
  const router = createConnectRouter({
    acceptCompression: [compressionGzip],
    readMaxBytes: limits.maxMessageBytes,
    jsonOptions: { ignoreUnknownFields: false },
    interceptors,
    shutdownSignal: shutdown,
    requestGate(context) {
      const problem = context.values.get(problemKey)
      if (problem) throw toConnectError(problem)
    },
  })
  routes(router)
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]))
  return (path) => {
    const handler = handlers.get(path)
    return handler && ((request, response, caller) => answer(handler, request, response, caller))
  }

  async function answer(
    handler: UniversalHandler,
    request: NodeRequest,
    response: NodeResponse,
    caller: Caller,
  ): Promise<void> {
    const contextValues = createContextValues().set(callerKey, caller)
    const incoming = universalRequestFromNodeRequest(request, response, undefined, contextValues)
    try {
      const { body, problem } = await inspect(incoming, handler)
      if (problem) contextValues.set(problemKey, problem)
      const outgoing = await handler({ ...incoming, body })
      // The answer of a unary call is one piece already.
      const isStream = handler.method.methodKind !== 'unary'
      const merged = isStream && outgoing.body && { body: mergeChunks(outgoing.body) }
      // A client that is gone while a write waits for it is never told of by the library: without this the source would wait for ever.
      if (merged) response.once('close', () => void merged.body.return(undefined).catch(() => undefined))
      await universalResponseToNodeResponse({ ...outgoing, ...merged }, response)
    } catch (error) {
      // The client is gone, or the answer had begun: nobody is left to tell.
      if (!incoming.signal?.aborted) onFailure(handler.method.name, error)
      if (!response.writableEnded) response.destroy()
    }
  }
}

interface Inspected {
  readonly body: UniversalServerRequest['body']
  readonly problem?: TuttiError
}

async function inspect(request: UniversalServerRequest, handler: UniversalHandler): Promise<Inspected> {
  const type = request.header.get('content-type') ?? ''
  const enveloped = /^application\/(connect\+|grpc)/.test(type)
  const known = /^application\/(json|proto|(connect\+|grpc(-web)?\+)(json|proto)|grpc(-web)?)(;|$)/.test(type)
  if (request.method !== 'POST' || !known || !isBytes(request.body)) return { body: request.body }
  const rest = request.body[Symbol.asyncIterator]()
  const chunks: Uint8Array[] = []
  let size = 0
  let done = false
  while (!done && size <= limits.maxMessageBytes + envelopeBytes) {
    const next = await rest.next()
    done = next.done === true
    if (!next.done) {
      chunks.push(next.value)
      size += next.value.byteLength
    }
  }
  const body = replay(chunks, rest)
  const message = done
    ? messageIn(Buffer.concat(chunks), enveloped, request.header.get('content-encoding'))
    : undefined
  if (message === undefined) return { body }
  const problem = requestProblem(handler.method.input, type.includes('json') ? 'json' : 'binary', message)
  return problem ? { body, problem } : { body }
}

/** The one message of the request; undefined when it is compressed, too long or cut off: then the library has the answer. */
function messageIn(bytes: Buffer, enveloped: boolean, encoding: string | null): Uint8Array | undefined {
  if (!enveloped) {
    const plain = (encoding === null || encoding === 'identity') && bytes.byteLength <= limits.maxMessageBytes
    return plain ? bytes : undefined
  }
  if (bytes.byteLength < envelopeBytes || bytes[0] !== 0) return undefined
  const length = bytes.readUInt32BE(1)
  const message = bytes.subarray(envelopeBytes, envelopeBytes + length)
  return message.byteLength === length && length <= limits.maxMessageBytes ? message : undefined
}

async function* replay(
  chunks: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* chunks
  for (;;) {
    const next = await rest.next()
    if (next.done) return
    yield next.value
  }
}

const isBytes = (body: UniversalServerRequest['body']): body is AsyncIterable<Uint8Array> =>
  typeof body === 'object' && body !== null && Symbol.asyncIterator in body
