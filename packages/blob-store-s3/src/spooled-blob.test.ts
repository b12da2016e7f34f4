import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blobIdOf } from '@tutti/blob-store'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { spool } from './spooled-blob.ts'

const never = new AbortController().signal
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti-spool-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function* counting(chunks: number): AsyncGenerator<Uint8Array> {
  const reused = new Uint8Array(1000)
  for (let index = 0; index < chunks; index += 1) yield reused.fill(index)
}
const expected = (chunks: number) =>
  Buffer.concat(Array.from({ length: chunks }, (_, index) => new Uint8Array(1000).fill(index)))

test.each([
  [3, false],
  [4, true],
])('a stream of %i kB goes to a file only when it is too much for memory: %s', async (chunks, onDisk) => {
  const blob = await spool(counting(chunks), never, { folder, memoryBytes: 3000 })
  try {
    const bytes = expected(chunks)
    expect(blob).toMatchObject({ id: blobIdOf(bytes), size: bytes.length, onDisk })
    expect(Buffer.from(await blob.read(0, blob.size))).toEqual(bytes)
    expect(Buffer.from(await blob.read(999, 2001))).toEqual(bytes.subarray(999, 2001))
    expect((await blob.read(blob.size - 1, blob.size + 10)).length).toBe(1)
    // The file has lost its name already.
    expect(await readdir(folder)).toEqual([])
  } finally {
    await blob.close()
  }
})

test('a temporary folder that fails is unavailable, and says which setting moves it', async () => {
  const missing = join(folder, 'none')
  await expect(spool(counting(4), never, { folder: missing, memoryBytes: 0 })).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('TMPDIR'),
    detail: { reason: 'temporary_folder' },
  })
})
