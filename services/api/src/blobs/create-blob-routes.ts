import type { IncomingMessage, ServerResponse } from 'node:http'
import { isBlobId, TuttiError } from '@tutti/core'

import type { ApiDeps } from '../api-deps.ts'
import type { Caller } from '../request-guard.ts'
import { confirmBlob, receiveBlob } from './receive-blob.ts'
import { sendBlob } from './send-blob.ts'

/** Answers one request for the path of a blob; undefined for any other path. */
export type BlobRoutes = (
  path: string,
) => ((request: IncomingMessage, response: ServerResponse, caller: Caller) => Promise<void>) | undefined

const prefix = '/blobs/'

/**
 * `/blobs/sha256_<hex>`: contents by hash, for clients. A blob that the caller has no reference to is not there, whether the store has
 * it or not.
 *
 * @param shutdown ends what is under way.
 */
export function createBlobRoutes(
  { blobs, catalog: { blobRefs } }: Pick<ApiDeps, 'blobs' | 'catalog'>,
  shutdown: AbortSignal,
): BlobRoutes {
  return (path) => {
    if (!path.startsWith(prefix)) return undefined
    const id = path.slice(prefix.length)
    return async (request, response, { owner }) => {
      if (!isBlobId(id))
        throw new TuttiError(
          'invalid_argument',
          'A blob is at /blobs/sha256_ and 64 lower-case hex digits.',
          {
            field: 'id',
          },
        )
      const gone = new AbortController()
      response.once('close', () => gone.abort())
      const signal = AbortSignal.any([shutdown, gone.signal])
      switch (request.method) {
        case 'GET':
        case 'HEAD':
          if (!(await blobRefs.has(owner, id, signal)))
            throw new TuttiError('not_found', `There is no blob ${id}.`, { id })
          return sendBlob(blobs, id, request, response, signal)
        case 'PUT':
          return receiveBlob({ blobs, blobRefs }, owner, id, request, response, signal)
        case 'POST': {
          const proof = new URL(request.url ?? '', 'http://localhost').searchParams.get('proof') ?? ''
          return confirmBlob({ blobs, blobRefs }, owner, id, proof, response, signal)
        }
        default:
          response.writeHead(405, { allow: 'GET, HEAD, PUT, POST' }).end()
      }
    }
  }
}
