import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { DescService } from '@bufbuild/protobuf'
import { createClient, type Client, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import {
  apiConfig,
  createApiServer,
  createLogger,
  createMetrics,
  ensureLocalKey,
  localOwner,
  type ApiConfig,
  type ApiServer,
} from '@tutti/api'
import { createFilesystemArchive, createFilesystemBlobStore, type BlobStore } from '@tutti/blob-store'
import { noCrashPoints, systemClock } from '@tutti/core'
import { createMirrors, type Mirrors } from '@tutti/git'
import { createSqliteStore, type SqliteStore } from '@tutti/store'

import { createRecordingTemporal, type RecordingTemporal } from './recording-temporal.ts'

export interface TestApi {
  readonly url: string
  readonly key: string
  readonly dataDir: string
  readonly store: SqliteStore
  readonly blobs: BlobStore
  readonly mirrors: Mirrors
  readonly temporal: RecordingTemporal
  /** Lines of the server's log so far. */
  readonly logLines: readonly string[]
  client<T extends DescService>(service: T, protocol?: 'connect' | 'json' | 'grpc'): Client<T>
  /** A plain HTTP call with the key: the way of a client that does not have our types. */
  post(path: string, body: string | Uint8Array, headers?: Readonly<Record<string, string>>): Promise<Response>
  /** As at the beginning of an orderly end. */
  drain(): void
  close(): Promise<void>
}

/** The API on a free port, with a real store, blobs and mirrors in a folder of its own; only Temporal is a double. */
export async function startTestApi(
  values: Partial<ApiConfig> = {},
  { blobs: given }: { readonly blobs?: BlobStore } = {},
): Promise<TestApi> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tutti-api-'))
  const store = await createSqliteStore({ path: join(dataDir, 'tutti.db') })
  const key = await ensureLocalKey(dataDir)
  const temporal = createRecordingTemporal(store, localOwner)
  const logLines: string[] = []
  const blobs = given ?? createFilesystemBlobStore({ root: join(dataDir, 'blobs') })
  const archive = createFilesystemArchive({ root: join(dataDir, 'archive') })
  const mirrors = createMirrors({ root: join(dataDir, 'mirrors'), archive })
  const server: ApiServer = createApiServer({
    ...store,
    blobs,
    archive,
    mirrors,
    temporal,
    system: {
      info: () => Promise.resolve({ dataDir }),
      doctor: () => Promise.resolve({}),
      configuration: () => Promise.resolve({}),
    },
    clock: systemClock,
    config: apiConfig({ 'data.dir': dataDir, ...values }),
    crashPoint: noCrashPoints,
    log: createLogger({ level: 'info', destination: { write: (line) => void logLines.push(line) } }),
    metrics: createMetrics({ agents: store.catalog.agents }),
    localKey: key,
  })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { url } = server.address()
  const authorization = `Bearer ${key}`
  const withKey: Interceptor = (next) => (request) => {
    request.header.set('authorization', authorization)
    return next(request)
  }

  return {
    url,
    key,
    dataDir,
    store,
    blobs,
    mirrors,
    temporal,
    logLines,
    client(service, protocol = 'connect') {
      const options = { baseUrl: url, interceptors: [withKey] }
      if (protocol === 'grpc') return createClient(service, createGrpcTransport(options))
      return createClient(
        service,
        createConnectTransport({ ...options, httpVersion: '1.1', useBinaryFormat: protocol === 'connect' }),
      )
    },
    post: (path, body, headers = {}) =>
      fetch(`${url}/${path}`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json', ...headers },
        body,
      }),
    drain: () => server.drain(),
    async close() {
      await server.close()
      await store.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
