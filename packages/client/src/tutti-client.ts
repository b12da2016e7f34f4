import type { DescService } from '@bufbuild/protobuf'
import {
  createClient,
  type CallOptions,
  type Client,
  type Interceptor,
  type Transport,
} from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import {
  AgentService,
  BackgroundComposerService,
  EnsembleService,
  PullRequestService,
  RepositoryService,
  SystemService,
} from '@tutti/proto'
import { createBlobClient, type BlobClient } from './blob-client.ts'
import { tuttiErrorOf } from './tutti-error-of.ts'

export interface TuttiClientOptions {
  /** `http://127.0.0.1:7733`, or `host:port`, which means http. */
  readonly address: string
  /** Sent as `Authorization: Bearer`. Empty: none is sent. */
  readonly key?: string
}

/** The public API, one member per service. Every call and stream fails with a TuttiError and nothing else. */
export interface TuttiClient {
  readonly address: string
  readonly composers: Client<typeof BackgroundComposerService>
  readonly agents: Client<typeof AgentService>
  readonly ensembles: Client<typeof EnsembleService>
  readonly pullRequests: Client<typeof PullRequestService>
  readonly repositories: Client<typeof RepositoryService>
  readonly system: Client<typeof SystemService>
  readonly blobs: BlobClient
}

/** Makes a client; connects with the first call. JSON is not used: binary messages keep unknown fields. */
export function createTuttiClient({ address, key = '' }: TuttiClientOptions): TuttiClient {
  const authorise: Interceptor = (next) => (request) => {
    if (key !== '') request.header.set('Authorization', `Bearer ${key}`)
    return next(request)
  }
  const baseUrl = /^https?:\/\//.test(address) ? address.replace(/\/+$/, '') : `http://${address}`
  const transport = createConnectTransport({ baseUrl, httpVersion: '1.1', interceptors: [authorise] })
  return {
    address: baseUrl,
    composers: serviceClient(BackgroundComposerService, transport),
    agents: serviceClient(AgentService, transport),
    ensembles: serviceClient(EnsembleService, transport),
    pullRequests: serviceClient(PullRequestService, transport),
    repositories: serviceClient(RepositoryService, transport),
    system: serviceClient(SystemService, transport),
    blobs: createBlobClient(baseUrl, key),
  }
}

type Call = (request: unknown, options?: CallOptions) => Promise<unknown> | AsyncIterable<unknown>

function serviceClient<S extends DescService>(service: S, transport: Transport): Client<S> {
  const inner = createClient(service, transport)
  const calls = Object.entries(inner).map(([name, call]) => [
    name,
    (request: unknown, options?: CallOptions) => {
      const answer = (call as Call)(request, options)
      return Symbol.asyncIterator in answer
        ? mapStream(answer)
        : answer.catch((thrown: unknown) => {
            throw tuttiErrorOf(thrown)
          })
    },
  ])
  return Object.fromEntries(calls) as Client<S>
}

async function* mapStream(stream: AsyncIterable<unknown>): AsyncGenerator<unknown> {
  try {
    yield* stream
  } catch (thrown) {
    throw tuttiErrorOf(thrown)
  }
}
