import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { blobIdOf } from '@tutti/blob-store'
import type { BlobId } from '@tutti/core'
import { createTuttiClient } from '@tutti/client'
import { startTestApi, type TestApi } from '@tutti/testkit/test-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const never = new AbortController().signal
let api: TestApi
beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())

const call = (id: string, init: RequestInit = {}) =>
  fetch(`${api.url}/blobs/${id}`, {
    ...init,
    headers: { authorization: `Bearer ${api.key}`, ...(init.headers as Record<string, string>) },
  })
const put = (id: BlobId, bytes: Uint8Array) => call(id, { method: 'PUT', body: new Blob([bytes.slice()]) })
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())

/** A blob that the caller has stored. */
async function stored(bytes: Uint8Array): Promise<BlobId> {
  const id = blobIdOf(bytes)
  expect((await put(id, bytes)).status).toBe(201)
  return id
}

describe('a blob by its hash', () => {
  test('is stored once and read, whole and in parts, by whoever stored it', async () => {
    const bytes = randomBytes(700_000)
    const id = await stored(bytes)
    expect((await put(id, bytes)).status).toBe(204)
    const whole = await call(id)
    expect(whole.status).toBe(200)
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      etag: `"${id}"`,
      'cache-control': 'private, max-age=31536000, immutable',
      'content-length': '700000',
      'content-type': 'application/octet-stream',
      'content-disposition': 'attachment',
      'x-content-type-options': 'nosniff',
      'accept-ranges': 'bytes',
    })
    expect((await bytesOf(whole)).equals(bytes)).toBe(true)
    const head = await call(id, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '700000'])
    const part = await call(id, { headers: { range: 'bytes=100000-399999' } })
    expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 100000-399999/700000'])
    expect((await bytesOf(part)).equals(bytes.subarray(100_000, 400_000))).toBe(true)
    const tail = await call(id, { headers: { range: 'bytes=-5', 'if-range': `"${id}"` } })
    expect((await bytesOf(tail)).equals(bytes.subarray(-5))).toBe(true)
    expect((await call(id, { headers: { range: 'bytes=-5', 'if-range': '"older"' } })).status).toBe(200)
    const behind = await call(id, { headers: { range: 'bytes=700000-' } })
    expect([behind.status, behind.headers.get('content-range')]).toEqual([416, 'bytes */700000'])
    const kept = await call(id, { headers: { 'if-none-match': `W/"${id}"` } })
    expect([kept.status, await kept.text()]).toEqual([304, ''])
  })

  test('the empty one, too', async () => {
    const id = await stored(new Uint8Array())
    const read = await call(id)
    expect([read.status, read.headers.get('content-length'), await read.text()]).toEqual([200, '0', ''])
  })

  test('of another owner is not there, and is theirs alone until the caller brings the bytes', async () => {
    const bytes = randomBytes(1000)
    const id = await api.blobs.put(bytes, never)
    await api.store.catalog.blobRefs.add('somebody', [id], never)
    const [theirs, nobodys] = [await call(id), await call(blobIdOf('nothing'))]
    expect([theirs.status, nobodys.status]).toEqual([404, 404])
    expect((await theirs.text()).replaceAll(id, '')).toBe(
      (await nobodys.text()).replaceAll(blobIdOf('nothing'), ''),
    )
    expect((await call(id, { headers: { 'if-none-match': '*' } })).status).toBe(404)
    // Its hash alone gives no right to it.
    expect((await put(id, randomBytes(1000))).status).toBe(400)
    expect((await call(`${id}?proof=`, { method: 'POST' })).status).toBe(409)
    expect((await call(id)).status).toBe(404)
    expect((await put(id, bytes)).status).toBe(201)
    expect((await call(id)).status).toBe(200)
  })

  test('with other bytes, cut off or too long, is refused and not stored', async () => {
    const id = blobIdOf('these')
    const wrong = await put(id, Buffer.from('other'))
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { code: 'invalid_argument' }])
    expect(await cutOff(id)).toBe('gone')
    const long = await raw(id, { 'content-length': String((512 << 20) + 1), expect: '100-continue' })
    expect(long).toEqual({ status: 400, continued: false })
    expect(
      (await call(id, { method: 'PUT', body: 'these', headers: { 'content-encoding': 'gzip' } })).status,
    ).toBe(400)
    expect((await call(id)).status).toBe(404)
    expect(await api.blobs.has(blobIdOf('other'), never)).toBe(false)
    // A server that was left in the middle finds that out after its client has.
    await expect.poll(() => readdirSync(join(api.dataDir, 'blobs', 'tmp'))).toEqual([])
  })

  test('who asks before it sends is told whether it has to', async () => {
    const id = await stored(Buffer.from('once'))
    expect(await raw(id, { 'content-length': '4', expect: '100-continue' })).toEqual({
      status: 204,
      continued: false,
    })
    const other = blobIdOf('twice')
    expect(await raw(other, { 'content-length': '5', expect: '100-continue' }, 'twice')).toEqual({
      status: 201,
      continued: true,
    })
  })

  test('that is damaged in the store never arrives as if it were whole', async () => {
    const bytes = randomBytes(300_000)
    const id = await stored(bytes)
    const path = join(api.dataDir, 'blobs', id.slice(7, 9), id)
    chmodSync(path, 0o600)
    writeFileSync(path, Buffer.concat([bytes.subarray(0, -1), Buffer.from([bytes.at(-1)! ^ 1])]))
    await expect(call(id).then(bytesOf)).rejects.toThrow('terminated')
  })

  test('is closed to other pages, other names and whoever has no key; other names and methods are told so', async () => {
    const id = await stored(Buffer.from('secret'))
    expect((await call(id, { headers: { authorization: 'Bearer x' } })).status).toBe(401)
    expect((await call(id, { headers: { origin: 'http://evil.example' } })).status).toBe(403)
    expect((await raw(id, { host: 'evil.example' }, undefined, 'GET')).status).toBe(403)
    expect((await call('sha256_..%2f..%2flocal-key')).status).toBe(400)
    expect((await call(id.toUpperCase())).status).toBe(400)
    const deleted = await call(id, { method: 'DELETE' })
    expect([deleted.status, deleted.headers.get('allow')]).toEqual([405, 'GET, HEAD, PUT, POST'])
  })
})

/** With exactly these headers; the body goes when the server says that it may, or at once. */
function raw(
  id: BlobId,
  headers: Record<string, string>,
  body?: string,
  method = 'PUT',
): Promise<{ status: number; continued: boolean }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${api.url}/blobs/${id}`, {
      method,
      headers: { authorization: `Bearer ${api.key}`, ...headers },
    })
    let continued = false
    request.on('continue', () => {
      continued = true
      request.end(body)
    })
    request.on('response', (response) => {
      response.resume()
      request.destroy()
      resolve({ status: response.statusCode ?? 0, continued })
    })
    request.on('error', (error) => reject(error))
    if (headers['expect'] === undefined) request.end(body)
    else request.flushHeaders()
  })
}

/** Half of the announced bytes, and then the connection ends. */
function cutOff(id: BlobId): Promise<string> {
  return new Promise((resolve) => {
    const request = httpRequest(`${api.url}/blobs/${id}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${api.key}`, 'content-length': '5' },
    })
    request.on('error', () => resolve('gone'))
    request.write('the', () => setImmediate(() => request.destroy(new Error('cut off'))))
  })
}

test('the client of ours stores, reads and is refused in words', async () => {
  const { blobs } = createTuttiClient({ address: api.url, key: api.key })
  for (const bytes of [randomBytes(3 << 20), Buffer.from('')]) {
    const id = blobIdOf(bytes)
    const content = {
      size: bytes.length,
      async *bytes() {
        for (let start = 0; start < bytes.length; start += 100_000)
          yield bytes.subarray(start, start + 100_000)
      },
    }
    await blobs.store(id, content, never)
    await blobs.store(id, content, never)
    expect(Buffer.concat(await Array.fromAsync(blobs.read(id, never))).equals(bytes)).toBe(true)
    await expect(blobs.store(blobIdOf('other'), content, never)).rejects.toMatchObject({
      code: 'invalid_argument',
    })
  }
  await expect(Array.fromAsync(blobs.read(blobIdOf('none'), never))).rejects.toMatchObject({
    code: 'not_found',
  })
})

test('the hash of what is read is the one that was asked for', async () => {
  const bytes = randomBytes(1 << 20)
  const read = await bytesOf(await call(await stored(bytes)))
  expect(createHash('sha256').update(read).digest('hex')).toBe(blobIdOf(bytes).slice(7))
})
