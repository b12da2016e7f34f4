import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { testArchiveContract } from './archive-contract.ts'
import { createFilesystemArchive } from './filesystem-archive.ts'

const never = new AbortController().signal
let root: string

beforeEach(async () => {
  root = join(await mkdtemp(join(tmpdir(), 'tutti-archive-')), 'archive')
})
afterEach(() => rm(join(root, '..'), { recursive: true }))

testArchiveContract('filesystem', async () => createFilesystemArchive({ root }))

test('nothing unfinished stays after a put, also after one that failed', async () => {
  const archive = createFilesystemArchive({ root })
  await archive.put('logs/x', new Uint8Array(3), never)
  await expect(archive.put('logs/x/y', new Uint8Array(3), never)).rejects.toMatchObject({
    code: 'unavailable',
  })
  expect(await readdir(join(root, 'tmp'))).toEqual([])
})

test('what the disk cannot read any more is lost, not to be waited for', async () => {
  const archive = createFilesystemArchive({ root })
  await mkdir(join(root, 'commits'), { recursive: true })
  // Nothing is mapped at its beginning: reading fails with EIO, as from a bad sector.
  await symlink('/proc/self/mem', join(root, 'commits', 'x'))
  await expect(Array.fromAsync(archive.stream('commits/x', never))).rejects.toMatchObject({
    code: 'data_loss',
    detail: { name: 'commits/x' },
  })
})
