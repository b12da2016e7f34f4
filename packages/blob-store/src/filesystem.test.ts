import { spawn } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { BlobId } from '@tutti/core'
import { passingName } from '@tutti/processes'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { testBlobStoreContract } from './contract.ts'
import { createFilesystemBlobStore } from './filesystem.ts'
import { createMemoryBlobStore } from './memory.ts'

const never = new AbortController().signal
const bytesOf = (text: string) => new TextEncoder().encode(text)
let root: string

beforeEach(async () => {
  root = join(await mkdtemp(join(tmpdir(), 'tutti-blobs-')), 'a folder', 'blobs')
})
afterEach(() => rm(join(root, '..', '..'), { recursive: true }))

testBlobStoreContract('filesystem', async () => createFilesystemBlobStore({ root }))

const pathOf = (id: string) => join(root, id.slice(7, 9), id)

test('a damaged blob fails with data_loss at the end, and putting its content again repairs it', async () => {
  const store = createFilesystemBlobStore({ root })
  const bytes = new Uint8Array(600_000).fill(7)
  const id = await store.put(bytes, never)
  await chmod(pathOf(id), 0o600)
  await truncate(pathOf(id), 599_999)

  let read = 0
  const reading = (async () => {
    for await (const chunk of store.stream(id, never)) read += chunk.length
  })()
  await expect(reading).rejects.toMatchObject({ code: 'data_loss', detail: { id } })
  expect(read).toBe(599_999)
  await expect(store.get(id, never)).rejects.toMatchObject({ code: 'data_loss' })

  expect(await store.put(bytes, never)).toBe(id)
  expect(Buffer.compare(await store.get(id, never), bytes)).toBe(0)
})

test('a damaged blob among many is told of, and so is one that cannot be read', async () => {
  const store = createFilesystemBlobStore({ root })
  const contents = Array.from({ length: 40 }, (_, at) => Buffer.from(`content ${at}`))
  const ids = await store.putAll(contents, never)
  expect((await store.getAll(ids, never)).map((bytes) => Buffer.from(bytes))).toEqual(contents)
  const id = ids[30]!
  for (const damage of ['shorter', 'content 30 and more', 'content 31']) {
    await chmod(pathOf(id), 0o600)
    await writeFile(pathOf(id), damage)
    await expect(store.getAll(ids, never)).rejects.toMatchObject({ code: 'data_loss', detail: { id } })
  }
  await rm(pathOf(id))
  await mkdir(pathOf(id))
  await expect(store.getAll(ids, never)).rejects.toMatchObject({ code: 'unavailable' })
  await rm(pathOf(id), { recursive: true })
  await store.put(contents[30]!, never)
  expect((await store.getAll(ids, never)).map((bytes) => Buffer.from(bytes))).toEqual(contents)
})

test('nothing unfinished stays after puts that ended well, failed or were cancelled', async () => {
  const store = createFilesystemBlobStore({ root })
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield bytesOf('part')
    throw new Error('the source broke')
  }
  await store.put(bytesOf('x'), never)
  await store.put(bytesOf('x'), never)
  await expect(store.put(broken(), never)).rejects.toThrow('the source broke')
  expect(await readdir(join(root, 'tmp'))).toEqual([])
})

test('a new store removes what a killed put left, and nothing of a living process that is younger than a day', async () => {
  const store = createFilesystemBlobStore({ root })
  await store.put(bytesOf('kept'), never)
  const program = `
    import { createFilesystemBlobStore } from ${JSON.stringify(new URL('./filesystem.ts', import.meta.url).href)}
    async function* endless() { yield new Uint8Array(10); process.send('half'); await new Promise(() => setInterval(() => {}, 1000)) }
    await createFilesystemBlobStore({ root: process.argv[1] }).put(endless(), new AbortController().signal)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, root], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  await new Promise((resolve) => child.once('message', resolve))
  const temporaries = join(root, 'tmp')
  const living = `${hostname().replaceAll(/[^A-Za-z0-9-]/g, '_')}.${passingName('blob')}.fresh`
  await mkdir(temporaries, { recursive: true })
  await writeFile(join(temporaries, living), '')
  await writeFile(join(temporaries, 'elsewhere.1.old'), '')
  await utimes(join(temporaries, 'elsewhere.1.old'), 0, 0)
  expect(await readdir(temporaries)).toHaveLength(3)

  await createFilesystemBlobStore({ root }).put(bytesOf('one'), never)
  expect((await readdir(temporaries)).toSorted()).toHaveLength(2)

  child.kill('SIGKILL')
  await new Promise((resolve) => child.once('exit', resolve))
  // A store that goes on is told to look.
  await store.removeLeftovers!(never)
  expect(await readdir(temporaries)).toEqual([living])
})

test('a crash before the name appears leaves nothing that can be read, one after it loses nothing', async () => {
  const died = new Error('died')
  const bytes = bytesOf('durable')
  const before = createFilesystemBlobStore({ root, crashPoint: () => Promise.reject(died) })
  await expect(before.put(bytes, never)).rejects.toMatchObject({ cause: died })
  const store = createFilesystemBlobStore({ root })
  const id = await createFilesystemBlobStore({ root: join(root, 'other') }).put(bytes, never)
  expect(await store.has(id, never)).toBe(false)

  const after = createFilesystemBlobStore({
    root,
    crashPoint: (_name, step) => step().then(() => Promise.reject(died)),
  })
  await expect(after.put(bytes, never)).rejects.toMatchObject({ cause: died })
  expect(Buffer.from(await store.get(id, never)).toString()).toBe('durable')
})

test('a disk that fails is unavailable, not not_found', async () => {
  await mkdir(join(root, '..'), { recursive: true })
  await writeFile(root, 'a file where the folder should be')
  const store = createFilesystemBlobStore({ root })
  await expect(store.put(bytesOf('x'), never)).rejects.toMatchObject({ code: 'unavailable' })
  await expect(store.has(`sha256_${'0'.repeat(64)}`, never)).rejects.toMatchObject({ code: 'unavailable' })
  expect((await stat(root)).isFile()).toBe(true)
})

test('a full disk is unavailable, and nothing of the blob stays', async () => {
  const program = `
    import { createFilesystemBlobStore } from ${JSON.stringify(new URL('./filesystem.ts', import.meta.url).href)}
    const store = createFilesystemBlobStore({ root: process.argv[1] })
    const never = new AbortController().signal
    const small = await store.put(new Uint8Array(10), never)
    await store.put(new Uint8Array(1 << 20), never).catch((error) => console.log(small, error.code))`
  // A limit on the size of files fails a write as a full disk does, and needs no rights.
  const child = spawn(
    'sh',
    ['-c', 'ulimit -f 64; exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', program, root],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const [id, code] = (await text(child.stdout)).trim().split(' ')
  expect(code).toBe('unavailable')
  expect(await readdir(join(root, 'tmp'))).toEqual([])
  const store = createFilesystemBlobStore({ root })
  expect(await store.get(id as BlobId, never)).toEqual(new Uint8Array(10))
  const big = await createMemoryBlobStore().put(new Uint8Array(1 << 20), never)
  expect(await store.has(big, never)).toBe(false)
})
