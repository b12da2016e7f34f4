import type { IncomingMessage, ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { BlobStore } from '@tutti/blob-store'
import type { BlobId } from '@tutti/core'

import { byteRange } from './byte-range.ts'
import { redirect } from './redirect.ts'

/** How long a redirect can be used, in milliseconds: long enough to begin a download, which may then take longer. */
const redirectMs = 5 * 60_000

/** A year: content never changes for a given hash. Only the owner's own cache may keep it. */
const forEver = 'private, max-age=31536000, immutable'

/**
 * `GET` and `HEAD` of a blob that the caller may read: from the store itself where it has an address of its own, else from here, whole
 * or one range of it. The last bytes of a whole blob are sent only when its hash was right: a damaged one is never taken for complete.
 *
 * @throws TuttiError `not_found` when the store has lost it, `data_loss` when it is damaged, before anything was sent.
 */
export async function sendBlob(
  blobs: BlobStore,
  id: BlobId,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const etag = `"${id}"`
  const { range, 'if-none-match': ifNoneMatch, 'if-range': ifRange } = request.headers
  if (matches(ifNoneMatch, etag)) {
    response.writeHead(304, { etag, 'cache-control': forEver }).end()
    return
  }
  const isHead = request.method === 'HEAD'
  if (blobs.signedDownload && !isHead) {
    redirect(response, await blobs.signedDownload(id, redirectMs, signal))
    return
  }
  const size = await blobs.size(id, signal)
  const part =
    ifRange === undefined || ifRange === etag ? byteRange(isHead ? undefined : range, size) : undefined
  const headers = {
    etag,
    'accept-ranges': 'bytes',
    'cache-control': forEver,
    'content-type': 'application/octet-stream',
    // An agent wrote it: a browser shall not show it as a page of this host.
    'content-disposition': 'attachment',
    'x-content-type-options': 'nosniff',
  }
  if (part === 'unsatisfiable') {
    response.writeHead(416, { 'content-range': `bytes */${size}`, 'cache-control': 'no-store' }).end()
    return
  }
  if (isHead) {
    response.writeHead(200, { ...headers, 'content-length': size }).end()
    return
  }
  const { start, end } = part ?? { start: 0, end: size }
  const chunks = blobs.stream(id, signal, part)[Symbol.asyncIterator]()
  try {
    let next = await chunks.next()
    response.writeHead(part ? 206 : 200, {
      ...headers,
      'content-length': end - start,
      ...(part && { 'content-range': `bytes ${start}-${end - 1}/${size}` }),
    })
    while (!next.done) {
      const chunk = next.value
      next = await chunks.next()
      if (!response.write(chunk)) await once(response, 'drain', { signal })
    }
    response.end()
  } finally {
    await chunks.return?.()
  }
}

const matches = (header: string | undefined, etag: string): boolean =>
  (header ?? '').split(',').some((text) => ['*', etag].includes(text.trim().replace(/^W\//, '')))
