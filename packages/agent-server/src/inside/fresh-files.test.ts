import { createHash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FileState } from '@tutti/workspace'
import { statTuple } from '@tutti/workspace'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createFreshFiles } from './fresh-files.ts'

let folder: string
let root: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti ünicode '))
  root = join(folder, 'workspace')
  mkdirSync(root)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const content = Buffer.from('content')
const hash = `sha256_${createHash('sha256').update(content).digest('hex')}` as const
const created = (path: string, mode: FileState['mode'] = '100644') => ({
  change: {
    action: 'created' as const,
    state: { path: Buffer.from(path), fileType: 'file' as const, mode, size: content.length, hash },
  },
  content,
})

test('writes a file with its folders and mode, whatever the umask says, and tells of its stat', () => {
  const before = process.umask(0o077)
  try {
    const fresh = createFreshFiles(root)
    for (const [path, mode, bits] of [
      ['a', '100644', 0o644],
      ['deep/er/b', '100755', 0o755],
      ['deep/er/c', '100644', 0o644],
    ] as const) {
      const written = fresh.write(created(path, mode))
      const stats = lstatSync(join(root, path), { bigint: true })
      expect(written).toEqual(statTuple(stats))
      expect(Number(stats.mode & 0o777n)).toBe(bits)
      expect(readFileSync(join(root, path))).toEqual(content)
    }
  } finally {
    process.umask(before)
  }
})

test('leaves alone what is there, what leads elsewhere and what it does not know', () => {
  const outside = join(folder, 'outside')
  mkdirSync(outside)
  mkdirSync(join(root, 'folder'))
  writeFileSync(join(root, 'file'), 'there')
  symlinkSync(outside, join(root, 'link'))
  symlinkSync(join(outside, 'new'), join(root, 'dangling'))
  const fresh = createFreshFiles(root)
  const paths = ['file', 'folder', 'link', 'dangling', 'link/a', 'link/a/b', 'file/a', '../a', '.git/a', '/a']
  expect(paths.map((path) => fresh.write(created(path)))).toEqual(paths.map(() => undefined))
  const { change } = created('new')
  expect(fresh.write({ change, content: (async function* () {})() })).toBeUndefined()
  expect(fresh.write({ change: { action: 'deleted', path: Buffer.from('file') }, content })).toBeUndefined()
  expect(readdirSync(outside)).toEqual([])
  expect(readdirSync(folder).sort()).toEqual(['outside', 'workspace'])
  expect(readdirSync(root).sort()).toEqual(['dangling', 'file', 'folder', 'link'])
  expect(readFileSync(join(root, 'file'), 'utf8')).toBe('there')
})

test('a folder that went after it was seen is not written into', () => {
  const fresh = createFreshFiles(root)
  expect(fresh.write(created('folder/a'))).toBeDefined()
  rmSync(join(root, 'folder'), { recursive: true })
  expect(fresh.write(created('folder/b'))).toBeUndefined()
  expect(readdirSync(root)).toEqual([])
})

test('a link that somebody else puts in the place of a folder is not followed', () => {
  const outside = join(folder, 'outside')
  mkdirSync(join(outside, 'deep'), { recursive: true })
  const fresh = createFreshFiles(root)
  expect(fresh.write(created('folder/deep/a'))).toBeDefined()
  rmSync(join(root, 'folder'), { recursive: true })
  symlinkSync(outside, join(root, 'folder'))
  fresh.forget('folder')
  expect(fresh.write(created('folder/deep/b'))).toBeUndefined()
  expect(readdirSync(join(outside, 'deep'))).toEqual([])
})

test('refuses what is not the content of its hash, and writes nothing', () => {
  const { change } = created('a')
  expect(() => createFreshFiles(root).write({ change, content: Buffer.from('another') })).toThrow(
    'The content of a is not that of its hash.',
  )
  expect(readdirSync(root)).toEqual([])
})
