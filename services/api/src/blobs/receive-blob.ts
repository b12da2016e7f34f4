import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BlobStore } from '@tutti/blob-store'
import { limits, TuttiError, type BlobId } from '@tutti/core'
import type { BlobRefCatalog } from '@tutti/store'

import { redirect } from './redirect.ts'

/** How long a client may take to begin its upload to the store, in milliseconds. */
const uploadMs = 15 * 60_000
/** A client that sends nothing for this long is gone, in milliseconds. */
const silenceMs = 60_000

export interface ReceiveDeps {
  readonly blobs: BlobStore
  readonly blobRefs: BlobRefCatalog
}

/**
 * `PUT` of a blob: its bytes are hashed as they come, and what has another hash or is too long is refused and not kept. Where the store
 * has an address of its own the client is sent there, and confirms what it has done ({@link confirmBlob}). Afterwards the caller may
 * read the blob: having the bytes is what gives that right.
 *
 * @throws TuttiError `invalid_argument` for other bytes, too many of them, or a missing length.
 */
export async function receiveBlob(
  { blobs, blobRefs }: ReceiveDeps,
  owner: string,
  id: BlobId,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const length = lengthOf(request)
  if (await blobRefs.has(owner, id, signal)) {
    // Young again, and not being removed: then it stays.
    await blobRefs.use(owner, [id], signal)
    if (await blobs.has(id, signal)) return there(response)
  }
  if (blobs.signedUpload) {
    if (length === undefined)
      throw refused(
        'Say how long the blob is (Content-Length): its upload is bound to that.',
        'content-length',
      )
    const proof = randomUUID()
    const upload = await blobs.signedUpload(id, { size: length, proof, expiresInMs: uploadMs }, signal)
    return redirect(response, upload, { confirm: `/blobs/${id}?proof=${proof}` })
  }
  if (request.headers.expect !== undefined) response.writeContinue()
  await blobs.put(checked(request, id), signal)
  await useBlob({ blobs, blobRefs }, owner, id, signal)
  made(response)
}

/**
 * `POST` after an upload to the store: the proof of the redirect shows that whoever made it had the bytes, whose hash and length the
 * store has checked. Nothing gets a reference without it.
 *
 * @throws TuttiError `failed_precondition` when the store does not have it with this proof.
 */
export async function confirmBlob(
  { blobs, blobRefs }: ReceiveDeps,
  owner: string,
  id: BlobId,
  proof: string,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  if (await blobRefs.has(owner, id, signal)) return there(response)
  if (proof === '' || !(await blobs.uploadedWith?.(id, proof, signal)))
    throw new TuttiError(
      'failed_precondition',
      'The store does not have this blob from the upload that is to be confirmed. Ask for another with PUT, and send the bytes there.',
      { id },
    )
  await useBlob({ blobs, blobRefs }, owner, id, signal)
  made(response)
}

/** The bytes are there, and were verified: only now is it the owner's. A sweep may have begun to remove the very blob before that. */
async function useBlob(
  { blobs, blobRefs }: ReceiveDeps,
  owner: string,
  id: BlobId,
  signal: AbortSignal,
): Promise<void> {
  await blobRefs.use(owner, [id], signal)
  if (await blobs.has(id, signal)) return
  throw new TuttiError(
    'unavailable',
    'The blob was removed at this moment, as nobody needed it; send it again.',
    { id },
  )
}

function lengthOf(request: IncomingMessage): number | undefined {
  const { 'content-length': text, 'content-encoding': encoding = 'identity' } = request.headers
  if (encoding !== 'identity')
    throw refused('A blob is sent as it is, without an encoding.', 'content-encoding')
  const length = text === undefined ? undefined : Number(text)
  if (length !== undefined && length > limits.maxFileBytes) throw tooLong()
  return length
}

/** The body, when it is what the id says: fails at its end otherwise, so that nothing of it is stored. */
async function* checked(request: IncomingMessage, id: BlobId): AsyncGenerator<Uint8Array> {
  const digest = createHash('sha256')
  let size = 0
  const silent = () => request.destroy(new TuttiError('cancelled', 'The client has stopped sending.'))
  let timer = setTimeout(silent, silenceMs)
  try {
    // Whoever is refused in the middle shall still get the answer.
    const chunks: AsyncIterable<Uint8Array> = request.iterator({ destroyOnReturn: false })
    for await (const chunk of chunks) {
      clearTimeout(timer)
      size += chunk.length
      if (size > limits.maxFileBytes) throw tooLong()
      digest.update(chunk)
      yield chunk
      timer = setTimeout(silent, silenceMs)
    }
  } finally {
    clearTimeout(timer)
  }
  if (`sha256_${digest.digest('hex')}` !== id)
    throw refused('These bytes have another hash than the path says; nothing was stored.', 'id')
}

const refused = (message: string, field: string) => new TuttiError('invalid_argument', message, { field })

const tooLong = () =>
  new TuttiError('invalid_argument', `A blob has at most ${limits.maxFileBytes} bytes.`, {
    limit: limits.maxFileBytes,
  })

const there = (response: ServerResponse): void =>
  void response.writeHead(204, { 'cache-control': 'no-store' }).end()

const made = (response: ServerResponse): void =>
  void response.writeHead(201, { 'cache-control': 'no-store', 'content-length': 0 }).end()
