import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import type { BlobId } from '@tutti/core'
import type { BlobStore } from './port.ts'

const never = new AbortController().signal
const bytesOf = (text: string) => new TextEncoder().encode(text)
const idOf = (bytes: Uint8Array): BlobId => `sha256_${createHash('sha256').update(bytes).digest('hex')}`
const absent: BlobId = `sha256_${'0'.repeat(64)}`

async function* chunksOf(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

/** What every blob store must do. An adapter's test is one line: `testBlobStoreContract('filesystem', () => …)`. */
export function testBlobStoreContract(name: string, createStore: () => Promise<BlobStore>): void {
  describe(`blob store: ${name}`, () => {
    let store: BlobStore
    beforeEach(async () => {
      store = await createStore()
    })

    test('gives back exactly what was put, the empty blob included', async () => {
      for (const bytes of [bytesOf(''), bytesOf('a\r\nb\0ü'), new Uint8Array(3 << 20).fill(255)]) {
        const id = await store.put(bytes, never)
        expect(id).toBe(idOf(bytes))
        expect(Buffer.compare(await store.get(id, never), bytes)).toBe(0)
        expect(Buffer.compare(await collect(store.stream(id, never)), bytes)).toBe(0)
      }
    })

    test('stores a stream as the same blob as its bytes at once', async () => {
      const id = await store.put(chunksOf(bytesOf('one '), bytesOf(''), bytesOf('two')), never)
      expect(id).toBe(idOf(bytesOf('one two')))
      expect(await store.put(bytesOf('one two'), never)).toBe(id)
      expect(Buffer.from(await store.get(id, never)).toString()).toBe('one two')
      expect(await store.put(chunksOf(), never)).toBe(idOf(bytesOf('')))
    })

    test('stores many at once as the same blobs, in their order', async () => {
      const contents = Array.from({ length: 50 }, (_, at) => bytesOf(at % 7 === 0 ? 'same' : `content ${at}`))
      const ids = await store.putAll(contents, never)
      expect(ids).toEqual(contents.map(idOf))
      for (const [at, id] of ids.entries())
        expect(Buffer.compare(await store.get(id, never), contents[at]!)).toBe(0)
      expect(await store.putAll([], never)).toEqual([])
      expect(await store.putAll(contents, never)).toEqual(ids)
      await expect(store.putAll([bytesOf('never')], AbortSignal.abort())).rejects.toMatchObject({
        code: 'cancelled',
      })
      expect(await store.has(idOf(bytesOf('never')), never)).toBe(false)
    })

    test('gives many at once, in the order in which they were asked for', async () => {
      const contents = Array.from({ length: 60 }, (_, at) => bytesOf(at % 7 === 0 ? '' : `content ${at}`))
      const ids = await store.putAll(contents, never)
      for (const count of [0, 1, 3, 60]) {
        const got = await store.getAll(ids.slice(0, count), never)
        expect(got.map(idOf)).toEqual(ids.slice(0, count))
        const refused = (id: BlobId) => store.getAll([...ids.slice(0, count), id], never)
        await expect(refused(absent)).rejects.toMatchObject({ code: 'not_found', detail: { id: absent } })
        await expect(refused('sha256_/etc/passwd' as BlobId)).rejects.toMatchObject({
          code: 'invalid_argument',
        })
      }
      await expect(store.getAll(ids, AbortSignal.abort())).rejects.toMatchObject({ code: 'cancelled' })
    })

    test('is one blob for the same content, also when many put it at once', async () => {
      const puts = Array.from({ length: 20 }, (_, index) =>
        store.put(index % 2 ? bytesOf('same') : chunksOf(bytesOf('sa'), bytesOf('me')), never),
      )
      expect(new Set(await Promise.all(puts))).toEqual(new Set([idOf(bytesOf('same'))]))
      expect(Buffer.from(await store.get(idOf(bytesOf('same')), never)).toString()).toBe('same')
    })

    test('says not_found, with the id, for what was never put', async () => {
      await expect(store.get(absent, never)).rejects.toMatchObject({
        code: 'not_found',
        detail: { id: absent },
      })
      await expect(collect(store.stream(absent, never))).rejects.toMatchObject({ code: 'not_found' })
      expect(await store.has(absent, never)).toBe(false)
    })

    test('has what was put, and knows its size', async () => {
      const id = await store.put(bytesOf('there'), never)
      expect(await store.has(id, never)).toBe(true)
      expect(await store.size(id, never)).toBe(5)
      expect(await store.size(await store.put(bytesOf(''), never), never)).toBe(0)
      await expect(store.size(absent, never)).rejects.toMatchObject({ code: 'not_found' })
    })

    test('refuses what is not a blob id', async () => {
      const id = 'sha256_../../../etc/passwd' as BlobId
      await expect(store.get(id, never)).rejects.toMatchObject({ code: 'invalid_argument' })
      await expect(store.has(id, never)).rejects.toMatchObject({ code: 'invalid_argument' })
      await expect(store.size(id, never)).rejects.toMatchObject({ code: 'invalid_argument' })
    })

    test('says cancelled, not not_found, when the caller gave up', async () => {
      const id = await store.put(bytesOf('there'), never)
      const gone = AbortSignal.abort()
      await expect(store.get(id, gone)).rejects.toMatchObject({ code: 'cancelled' })
      await expect(store.has(absent, gone)).rejects.toMatchObject({ code: 'cancelled' })
      await expect(store.put(bytesOf('new'), gone)).rejects.toMatchObject({ code: 'cancelled' })
      expect(await store.has(idOf(bytesOf('new')), never)).toBe(false)
    })

    test('gives up on a source that hangs, ends it and stores nothing', async () => {
      const caller = new AbortController()
      const ended = Promise.withResolvers<void>()
      const source: AsyncIterable<Uint8Array> = {
        [Symbol.asyncIterator]: () => {
          let first = true
          return {
            next: () => {
              if (!first) return new Promise(() => {})
              first = false
              setImmediate(() => caller.abort())
              return Promise.resolve({ done: false, value: bytesOf('half') })
            },
            return: () => {
              ended.resolve()
              return Promise.resolve({ done: true, value: undefined })
            },
          }
        },
      }
      await expect(store.put(source, caller.signal)).rejects.toMatchObject({ code: 'cancelled' })
      await ended.promise
      expect(await store.has(idOf(bytesOf('half')), never)).toBe(false)
    })

    test('passes on the failure of a source and stores nothing', async () => {
      async function* broken(): AsyncGenerator<Uint8Array> {
        yield bytesOf('part')
        throw new Error('the source broke')
      }
      await expect(store.put(broken(), never)).rejects.toThrow('the source broke')
      expect(await store.has(idOf(bytesOf('part')), never)).toBe(false)
    })

    test('lists what is there, and not what was removed', async () => {
      const listed = async () => {
        const blobs = await Array.fromAsync(store.list(never))
        return Object.fromEntries(blobs.map(({ id, size }) => [id, size]))
      }
      const begun = Date.now()
      const kept = await store.put(bytesOf('kept'), never)
      const gone = await store.put(bytesOf('to go'), never)
      expect(await listed()).toMatchObject({ [kept]: 4, [gone]: 5 })
      const { storedAt } = (await Array.fromAsync(store.list(never))).find(({ id }) => id === kept)!
      // Servers count in whole seconds, and their clocks are not ours.
      expect(Math.abs(storedAt - begun)).toBeLessThan(10_000)
      await store.remove(gone, never)
      await store.remove(gone, never)
      expect(await listed()).toEqual({ [kept]: 4 })
      expect(await store.has(gone, never)).toBe(false)
      await expect(store.remove('sha256_../x' as BlobId, never)).rejects.toMatchObject({
        code: 'invalid_argument',
      })
      expect(await store.put(bytesOf('to go'), never)).toBe(gone)
      expect(await store.has(gone, never)).toBe(true)
    })

    test('reads ranges, cut at the end of the blob', async () => {
      const id = await store.put(bytesOf('0123456789'), never)
      const range = async (start: number, end: number) =>
        Buffer.from(await store.get(id, never, { start, end })).toString()
      expect(await range(7, 99)).toBe('789')
      expect(await range(0, 3)).toBe('012')
      expect(await range(4, 4)).toBe('')
      expect(await range(10, 12)).toBe('')
      await expect(range(3, 2)).rejects.toMatchObject({ code: 'invalid_argument' })
      await expect(range(-1, 2)).rejects.toMatchObject({ code: 'invalid_argument' })
    })

    test('keeps a blob as it was when the bytes that were put or read are changed', async () => {
      const bytes = bytesOf('constant')
      const id = await store.put(bytes, never)
      bytes.fill(0)
      const read = await store.get(id, never)
      read.fill(1)
      expect(Buffer.from(await store.get(id, never)).toString()).toBe('constant')
    })
  })
}
