import { randomBytes } from 'node:crypto'
import { blobIdOf } from '@tutti/blob-store'
import { createS3BlobStore, type S3BlobStore } from '@tutti/blob-store-s3'
import { createTuttiClient } from '@tutti/client'
import { createS3Server, type S3Server } from '@tutti/testkit'
import { startTestApi, type TestApi } from '@tutti/testkit/test-api'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'

const never = new AbortController().signal

interface Redirect {
  readonly method: string
  readonly url: string
  readonly headers: Record<string, string>
  readonly confirm: string
}

describe.each(['ministack', 'versitygw'] as const)('%s', (kind) => {
  const path = inject('s3Servers')[kind]
  const why = path === null ? `: ${inject('s3Missing')}` : ''

  describe.skipIf(path === null)(`blobs by HTTP on S3${why}`, () => {
    let server: S3Server
    let store: S3BlobStore
    let api: TestApi

    beforeAll(async () => {
      server = await createS3Server(kind, path!)
      await server.createBucket('blobs')
      const { endpoint, credentials } = server
      store = createS3BlobStore({ bucket: 'blobs', endpoint, credentials })
      api = await startTestApi({}, { blobs: store })
    })
    afterAll(async () => {
      await api?.close()
      store?.close()
      await server?.remove()
    })

    const call = (target: string, init: RequestInit = {}) =>
      fetch(`${api.url}${target}`, {
        redirect: 'manual',
        ...init,
        headers: { authorization: `Bearer ${api.key}`, ...(init.headers as Record<string, string>) },
      })
    const ask = async (bytes: Uint8Array): Promise<Redirect> => {
      const asked = await call(`/blobs/${blobIdOf(bytes)}`, {
        method: 'PUT',
        body: new Blob([bytes.slice()]),
      })
      expect([asked.status, asked.headers.get('cache-control')]).toEqual([307, 'no-store'])
      return (await asked.json()) as Redirect
    }
    const send = ({ url, headers }: Redirect, bytes: Uint8Array) => {
      const own = Object.entries(headers).filter(([name]) => name !== 'content-length')
      return fetch(url, { method: 'PUT', headers: own, body: new Blob([bytes.slice()]) })
    }

    test('a client is sent to the store, confirms, and is sent there to read', async () => {
      const bytes = randomBytes(100_000)
      const id = blobIdOf(bytes)
      const upload = await ask(bytes)
      expect((await send(upload, bytes)).status).toBe(200)
      expect((await call(`/blobs/${id}`)).status).toBe(404)
      expect((await call(upload.confirm, { method: 'POST' })).status).toBe(201)
      // A confirmation whose answer was lost is sent again.
      expect((await call(upload.confirm, { method: 'POST' })).status).toBe(204)

      const followed = await call(`/blobs/${id}`, { redirect: 'follow' })
      expect(Buffer.from(await followed.arrayBuffer()).equals(bytes)).toBe(true)
      const part = await call(`/blobs/${id}`, { redirect: 'follow', headers: { range: 'bytes=10-19' } })
      expect(part.status).toBe(206)
      expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(10, 20))).toBe(true)
      const head = await call(`/blobs/${id}`, { method: 'HEAD' })
      expect([head.status, head.headers.get('content-length')]).toEqual([200, '100000'])
      expect((await call(`/blobs/${id}`, { headers: { 'if-none-match': `"${id}"` } })).status).toBe(304)
      expect((await call(`/blobs/${id}`, { method: 'PUT', body: new Blob([bytes]) })).status).toBe(204)
    })

    test('the client of ours goes both ways by itself', async () => {
      const { blobs } = createTuttiClient({ address: api.url, key: api.key })
      const bytes = randomBytes(300_000)
      const id = blobIdOf(bytes)
      const content = {
        size: bytes.length,
        async *bytes() {
          yield bytes
        },
      }
      await blobs.store(id, content, never)
      await blobs.store(id, content, never)
      expect(Buffer.concat(await Array.fromAsync(blobs.read(id, never))).equals(bytes)).toBe(true)
      await expect(Array.fromAsync(blobs.read(blobIdOf('none'), never))).rejects.toMatchObject({
        code: 'not_found',
      })
      await expect(blobs.store(blobIdOf('other'), content, never)).rejects.toMatchObject({
        code: 'unavailable',
      })
    })

    test('what was not uploaded gets no reference: nothing, other bytes, a blob of another owner', async () => {
      const [bytes, other] = [randomBytes(1000), randomBytes(1000)]
      const id = blobIdOf(bytes)
      const upload = await ask(bytes)
      expect((await call(upload.confirm, { method: 'POST' })).status).toBe(409)
      expect((await send(upload, other)).status).toBe(400)
      expect((await call(upload.confirm, { method: 'POST' })).status).toBe(409)
      await store.put(bytes, never)
      await api.store.catalog.blobRefs.add('somebody', [id], never)
      expect((await call(upload.confirm, { method: 'POST' })).status).toBe(409)
      expect((await call(`/blobs/${id}`)).status).toBe(404)
      // With the bytes it can be had, although it is there.
      expect((await send(upload, bytes)).status).toBe(200)
      expect((await call(upload.confirm, { method: 'POST' })).status).toBe(201)
      expect((await call(`/blobs/${id}`)).status).toBe(307)
    })

    test('an upload without a length is refused', async () => {
      const body = new ReadableStream({
        start(stream) {
          stream.enqueue(Buffer.from('x'))
          stream.close()
        },
      })
      const asked = await call(`/blobs/${blobIdOf('x')}`, {
        method: 'PUT',
        body,
        duplex: 'half',
      } as RequestInit)
      expect([asked.status, await asked.json()]).toMatchObject([400, { code: 'invalid_argument' }])
    })
  })
})
