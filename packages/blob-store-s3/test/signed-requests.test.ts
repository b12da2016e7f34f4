import { blobIdOf } from '@tutti/blob-store'
import type { SignedRequest } from '@tutti/blob-store'
import { expect, test } from 'vitest'
import { describeOnS3 } from './describe-on-s3.ts'
import { patternBytes } from './pattern-bytes.ts'

const never = new AbortController().signal
const minute = 60_000
const proof = 'f3b1-no-one-can-guess'

const send = async ({ method, url, headers }: SignedRequest, body?: Uint8Array) => {
  const { 'content-length': _, ...own } = headers
  const response = await fetch(url, { method, headers: own, ...(body && { body: new Blob([body.slice()]) }) })
  return {
    status: response.status,
    headers: response.headers,
    bytes: new Uint8Array(await response.arrayBuffer()),
  }
}

describeOnS3('signed requests', (bucket) => {
  test('a client stores a blob by itself, which proves that it has the bytes, and reads it', async () => {
    const store = bucket().store()
    const bytes = patternBytes(100_000, 1)
    const id = blobIdOf(bytes)
    const before = Date.now()
    const upload = await store.signedUpload(id, { size: bytes.length, proof, expiresInMs: minute }, never)
    expect(upload).toMatchObject({ method: 'PUT', headers: { 'content-length': '100000' } })
    expect(upload.expiresAt).toBeGreaterThan(before + minute - 2000)
    expect(upload.expiresAt).toBeLessThanOrEqual(Date.now() + minute)
    expect(await store.uploadedWith(id, proof, never)).toBe(false)
    expect((await send(upload, bytes)).status).toBe(200)
    expect(Buffer.compare(await store.get(id, never), bytes)).toBe(0)
    expect(await store.uploadedWith(id, proof, never)).toBe(true)
    expect(await store.uploadedWith(id, 'another', never)).toBe(false)
    // There already.
    expect((await send(upload, bytes)).status).toBe(200)

    const download = await store.signedDownload(id, minute, never)
    const read = await send(download)
    expect(read.status).toBe(200)
    expect(Buffer.compare(read.bytes, bytes)).toBe(0)
    expect(read.headers.get('content-disposition')).toBe('attachment')
    const part = await send({ ...download, headers: { range: 'bytes=10-19' } })
    expect(part).toMatchObject({ status: 206, bytes: bytes.slice(10, 20) })
  })

  test('an empty blob can be stored so', async () => {
    const store = bucket().store()
    const id = blobIdOf('')
    expect(
      (
        await send(
          await store.signedUpload(id, { size: 0, proof, expiresInMs: minute }, never),
          new Uint8Array(),
        )
      ).status,
    ).toBe(200)
    expect(await store.get(id, never)).toEqual(new Uint8Array())
  })

  test('other bytes, another length and other headers are refused, and nothing is stored', async () => {
    const store = bucket().store()
    const bytes = patternBytes(100_000, 2)
    const other = patternBytes(100_000, 3)
    const id = blobIdOf(bytes)
    const upload = await store.signedUpload(id, { size: bytes.length, proof, expiresInMs: minute }, never)
    const { 'x-amz-checksum-sha256': sum = '', ...unsummed } = upload.headers
    const swapped = {
      ...unsummed,
      'x-amz-checksum-sha256': Buffer.from(blobIdOf(other).slice(7), 'hex').toString('base64'),
    }
    const refused = [
      await send(upload, other),
      await send(upload, bytes.subarray(1)),
      await send({ ...upload, headers: unsummed }, other),
      await send({ ...upload, headers: swapped }, other),
      await send({ ...upload, url: upload.url.replace(id, blobIdOf(other)) }, bytes),
      await send(
        { ...upload, headers: { 'x-amz-checksum-sha256': sum, 'x-amz-meta-tutti-proof': 'x' } },
        bytes,
      ),
    ]
    expect(refused.map(({ status }) => status)).toEqual([400, 403, 403, 403, 403, 403])
    expect(await store.has(id, never)).toBe(false)
    expect(await store.has(blobIdOf(other), never)).toBe(false)
  })

  test('a signed request is for one blob and one method', async () => {
    const store = bucket().store()
    const id = await store.put(patternBytes(10, 4), never)
    const secret = await store.put(patternBytes(10, 5), never)
    const download = await store.signedDownload(id, minute, never)
    expect((await send({ ...download, url: download.url.replace(id, secret) })).status).toBe(403)
    expect((await send({ ...download, method: 'PUT' }, new Uint8Array(10))).status).toBe(403)
    const anonymous = new URL(download.url)
    anonymous.search = ''
    expect((await send({ ...download, url: anonymous.href })).status).toBe(403)
  })

  test('signs for the address that clients reach', async () => {
    const store = bucket().store({ publicEndpoint: 'https://files.example:8443' })
    const { url } = await store.signedDownload(blobIdOf('x'), minute, never)
    expect(url).toMatch(/^https:\/\/files\.example:8443\/blobs\/tests\/\d+\/files\/sha256_/)
  })

  test('refuses times, sizes and ids out of bounds', async () => {
    const store = bucket().store()
    const id = blobIdOf('x')
    for (const expiresInMs of [0, 999, 7 * 24 * 60 * minute + 1, Number.NaN]) {
      await expect(store.signedDownload(id, expiresInMs, never)).rejects.toMatchObject({
        code: 'invalid_argument',
        detail: { field: 'expiresInMs' },
      })
    }
    for (const size of [-1, 1.5, 5 * 2 ** 30 + 1]) {
      await expect(store.signedUpload(id, { size, proof, expiresInMs: minute }, never)).rejects.toMatchObject(
        {
          code: 'invalid_argument',
          detail: { field: 'size' },
        },
      )
    }
    await expect(store.signedDownload('sha256_../x', minute, never)).rejects.toMatchObject({
      code: 'invalid_argument',
    })
  })
})
