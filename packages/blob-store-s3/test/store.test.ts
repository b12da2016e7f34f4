import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { ListMultipartUploadsCommand, PutObjectCommand } from '@aws-sdk/client-s3'
import { blobIdOf } from '@tutti/blob-store'
import { expect, test } from 'vitest'
import { describeOnS3 } from './describe-on-s3.ts'
import { patternBytes } from './pattern-bytes.ts'

const never = new AbortController().signal
const bytesOf = (words: string) => new TextEncoder().encode(words)

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

describeOnS3('store', (bucket) => {
  const uploads = async () => {
    const { client, name } = bucket()
    return (await client.send(new ListMultipartUploadsCommand({ Bucket: name }))).Uploads ?? []
  }

  test(
    'a big blob goes in parts and comes back whole, from bytes and from a stream',
    { timeout: 60_000 },
    async () => {
      const temporaryFolder = await mkdtemp(join(tmpdir(), 'tutti-s3-'))
      try {
        for (const [seed, streamed] of [true, false].entries()) {
          const store = bucket().store({ temporaryFolder })
          const big = patternBytes((18 << 20) + 17, seed)
          const id = await store.put(streamed ? inChunks(big, 100_000) : big, never)
          expect(id).toBe(blobIdOf(big))
          expect(Buffer.compare(await store.get(id, never), big)).toBe(0)
          const [start, end] = [(8 << 20) - 3, (16 << 20) + 3]
          const part = await store.get(id, never, { start, end })
          expect(Buffer.compare(part, big.subarray(start, end))).toBe(0)
          // Again, over what is there.
          expect(await store.put(big, never)).toBe(id)
        }
        expect(await uploads()).toEqual([])
        expect(await readdir(temporaryFolder)).toEqual([])
      } finally {
        await rm(temporaryFolder, { recursive: true })
      }
    },
  )

  test('bytes that change after they got their name are refused', async () => {
    const store = bucket().store()
    const bytes = patternBytes(17 << 20, 7)
    const id = blobIdOf(bytes)
    const putting = store.put(bytes, never)
    // The hash is taken in the same turn; the parts are read after the server was asked for the blob.
    setImmediate(() => bytes.fill(0))
    await expect(putting).rejects.toMatchObject({
      code: 'unavailable',
      detail: { reason: 'changed_while_stored', id },
    })
    expect(await store.has(id, never)).toBe(false)
    expect(await uploads()).toEqual([])
  })

  test('several processes put the same blobs at once', { timeout: 60_000 }, async () => {
    const { server, name } = bucket()
    const options = {
      bucket: name,
      prefix: 'processes',
      endpoint: server.endpoint,
      credentials: server.credentials,
    }
    const program = `
      import { createS3BlobStore } from ${JSON.stringify(new URL('../src/index.ts', import.meta.url).href)}
      import { patternBytes } from ${JSON.stringify(new URL('pattern-bytes.ts', import.meta.url).href)}
      const store = createS3BlobStore(JSON.parse(process.argv[1]))
      process.stdin.once('data', async () => {
        const sizes = [17 << 20, 0, 1, 300_000, 2 << 20]
        const ids = await Promise.all(sizes.map((size) => store.put(patternBytes(size, 9), new AbortController().signal)))
        console.log(ids.join())
        process.exit()
      })
      process.stderr.write('ready')`
    const processes = Array.from({ length: 3 }, () =>
      spawn(process.execPath, ['--input-type=module', '-e', program, JSON.stringify(options)]),
    )
    const outputs = processes.map((child) => text(child.stdout))
    await Promise.all(processes.map((child) => new Promise((resolve) => child.stderr.once('data', resolve))))
    for (const child of processes) child.stdin.write('go')
    const expected = [17 << 20, 0, 1, 300_000, 2 << 20].map((size) => patternBytes(size, 9))
    for (const output of await Promise.all(outputs)) {
      expect(output.trim().split(',')).toEqual(expected.map(blobIdOf))
    }
    const store = bucket().store({ prefix: 'processes' })
    for (const bytes of expected) {
      expect(Buffer.compare(await store.get(blobIdOf(bytes), never), bytes)).toBe(0)
    }
    expect(await uploads()).toEqual([])
  })

  test('wrong bytes in the bucket are data_loss, as wrong as they are', async () => {
    const { client, name } = bucket()
    const store = bucket().store({ prefix: 'damaged' })
    const good = patternBytes(200_000, 3)
    const id = await store.put(good, never)
    const flipped = good.slice()
    flipped[100_000]! ^= 1
    for (const wrong of [flipped, good.subarray(0, 199_999), Buffer.concat([good, Buffer.of(0)])]) {
      await client.send(new PutObjectCommand({ Bucket: name, Key: `damaged/files/${id}`, Body: wrong }))
      await expect(store.get(id, never)).rejects.toMatchObject({
        code: 'data_loss',
        message: expect.stringContaining(`damaged/files/${id}`),
      })
      let read = 0
      const reading = (async () => {
        for await (const chunk of store.stream(id, never)) read += chunk.length
      })()
      await expect(reading).rejects.toMatchObject({ code: 'data_loss', detail: { id } })
      expect(read).toBe(wrong.length)
    }
    // The last of them has another length, so that putting the content again sees it.
    expect(await store.put(good, never)).toBe(id)
    expect(Buffer.compare(await store.get(id, never), good)).toBe(0)
  })

  test('a bucket that is missing is told as such, and never as a missing blob', async () => {
    const { server } = bucket()
    const store = bucket().store({ bucket: 'nobody-made-it' })
    const id = blobIdOf('x')
    const refused = {
      code: 'unavailable',
      message: `There is no bucket "nobody-made-it" at ${server.endpoint}. Create it, or correct its name.`,
      detail: { reason: 'no_such_bucket', bucket: 'nobody-made-it', endpoint: server.endpoint },
    }
    await expect(store.put(bytesOf('x'), never)).rejects.toMatchObject(refused)
    await expect(store.get(id, never)).rejects.toMatchObject(refused)
    await expect(store.has(id, never)).rejects.toMatchObject(refused)
    await expect(store.put(new Uint8Array(17 << 20), never)).rejects.toMatchObject(refused)
  })

  test('credentials that are refused are told without them', async () => {
    const { server } = bucket()
    // The emulator checks the name of a key alone.
    const wrong =
      server.kind === 'versitygw'
        ? { ...server.credentials, secretAccessKey: 'a-wrong-secret' }
        : { accessKeyId: 'a-wrong-key', secretAccessKey: 'a-wrong-secret' }
    const store = bucket().store({ credentials: wrong })
    for (const call of [() => store.put(bytesOf('x'), never), () => store.has(blobIdOf('x'), never)]) {
      const error = await call().then(String, (thrown: unknown) => thrown)
      expect(error).toMatchObject({
        code: 'unavailable',
        detail: { reason: 'bad_credentials', bucket: 'blobs', endpoint: server.endpoint, status: 403 },
      })
      expect(inspect(error, { depth: 9 })).not.toMatch(/a-wrong|testkey|StringToSign|Signature=/)
    }
  })
})
