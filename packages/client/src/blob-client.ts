import { createHash } from 'node:crypto'
import * as http from 'node:http'
import * as https from 'node:https'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { text } from 'node:stream/consumers'
import { TuttiError, type BlobId } from '@tutti/core'
import { tuttiErrorOf, tuttiErrorOfHttp } from './tutti-error-of.ts'

/** Bytes whose hash is known; may be asked for more than once. */
export interface BlobContent {
  readonly size: number
  bytes(): AsyncIterable<Uint8Array>
}

/** Contents by hash, through the server or, where that sends us there, from the store itself. */
export interface BlobClient {
  /** The whole blob. @throws TuttiError `not_found`; `data_loss` at its end when the bytes are not those of the hash. */
  read(id: BlobId, signal: AbortSignal): AsyncGenerator<Uint8Array>
  /** Stores it, unless it is ours already. @throws TuttiError `invalid_argument` when the content has another hash. */
  store(id: BlobId, content: BlobContent, signal: AbortSignal): Promise<void>
}

/** A server that says nothing to our question is sent the body, in milliseconds. */
const continueMs = 2000

interface Upload {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly confirm: string
}

/** @param baseUrl of the API, without a slash behind it */
export function createBlobClient(baseUrl: string, key: string): BlobClient {
  const authorization = key === '' ? {} : { authorization: `Bearer ${key}` }

  return {
    async *read(id, signal) {
      const digest = createHash('sha256')
      try {
        // Followed to the store without the key: it is another origin.
        const response = await fetch(`${baseUrl}/blobs/${id}`, { headers: authorization, signal })
        if (!response.ok) throw tuttiErrorOfHttp(response.status, await response.text())
        for await (const chunk of response.body ?? []) {
          digest.update(chunk)
          yield chunk
        }
      } catch (thrown) {
        throw tuttiErrorOf(thrown)
      }
      if (`sha256_${digest.digest('hex')}` !== id)
        throw new TuttiError('data_loss', `Blob ${id} did not arrive as it is; try again.`, { id })
    },

    async store(id, content, signal) {
      try {
        const path = `${baseUrl}/blobs/${id}`
        const headers = { ...authorization, expect: '100-continue', 'content-length': String(content.size) }
        const answer = await send('PUT', path, headers, content, signal)
        if (answer.status === 201 || answer.status === 204) return
        if (answer.status !== 307) throw tuttiErrorOfHttp(answer.status, answer.body)
        const upload = JSON.parse(answer.body) as Upload
        const stored = await send('PUT', upload.url, upload.headers, content, signal)
        if (stored.status !== 200)
          throw new TuttiError(
            'unavailable',
            `The store refused an upload (HTTP ${stored.status}); try again.`,
            { id },
          )
        const confirmed = await send('POST', `${baseUrl}${upload.confirm}`, authorization, undefined, signal)
        if (confirmed.status >= 300) throw tuttiErrorOfHttp(confirmed.status, confirmed.body)
      } catch (thrown) {
        throw tuttiErrorOf(thrown)
      }
    },
  }
}

/** One request; a body that is not wanted is not sent. */
function send(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>>,
  content: BlobContent | undefined,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly body: string }> {
  const { request: open } = url.startsWith('https:') ? https : http
  return new Promise((resolve, reject) => {
    const request = open(url, { method, headers, signal })
    let isSending = false
    const body = () => {
      clearTimeout(timer)
      if (isSending) return
      isSending = true
      // A failure ends the request, which says why; one after the answer is of no interest.
      if (content)
        pipeline(Readable.from(content.bytes()), request).catch((error: Error) => request.destroy(error))
      else request.end()
    }
    const timer = headers['expect'] === undefined ? undefined : setTimeout(body, continueMs)
    request.on('continue', body)
    request.on('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    request.on('response', (response) => {
      clearTimeout(timer)
      text(response)
        .then((answer) => resolve({ status: response.statusCode ?? 0, body: answer }), reject)
        .finally(() => {
          if (!request.writableEnded) request.destroy()
        })
    })
    if (timer) request.flushHeaders()
    else body()
  })
}
