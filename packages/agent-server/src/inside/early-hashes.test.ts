import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { statTuple } from '@tutti/workspace'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { buildAgentServer } from '../build-agent-server.ts'
import { startEarlyHashes } from './early-hashes.ts'
import {
  claimFirst,
  claimLast,
  createHashTable,
  hashOfRow,
  setWritten,
  type HashTable,
} from './hash-table.ts'

const never = new AbortController().signal
let root: string
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'tutti ünicode '))))
afterEach(() => rmSync(root, { recursive: true, force: true }))

const write = (key: string, content: string | Buffer) => {
  mkdirSync(dirname(join(root, key)), { recursive: true })
  writeFileSync(join(root, key), content)
}
const statOf = (key: string) => statTuple(lstatSync(join(root, key), { bigint: true }))
const hashOf = (content: string | Buffer) =>
  `sha256_${createHash('sha256').update(content).digest('hex')}` as const
const large = Buffer.alloc(700 << 10, 'large')

test('has the hash of each file that is as it was when it was read, and of no other', async () => {
  write('a', 'one')
  write('folder/b', large)
  write('empty', '')
  write('changed', 'before')
  symlinkSync('a', join(root, 'link'))
  const early = startEarlyHashes(root, ['a', 'changed', 'empty', 'folder/b', 'gone', 'link'])
  early.written()
  write('added', 'later')
  early.add(['added'])
  await early.finish(never)
  expect(early.of('added', statOf('added'))).toBe(hashOf('later'))
  expect(early.of('a', statOf('a'))).toBe(hashOf('one'))
  expect(early.of('folder/b', statOf('folder/b'))).toBe(hashOf(large))
  expect(early.of('empty', statOf('empty'))).toBe(hashOf(''))
  expect(early.of('link', statOf('link'))).toBeUndefined()
  expect(early.of('nobody', statOf('a'))).toBeUndefined()
  const before = statOf('changed')
  const { mtime } = lstatSync(join(root, 'changed'))
  // The clock of the file system ticks slowly.
  while (statOf('changed').ctimeNs === before.ctimeNs) {
    write('changed', 'behind')
    utimesSync(join(root, 'changed'), mtime, mtime)
  }
  expect(early.of('changed', statOf('changed'))).toBeUndefined()
})

test('knows a file that was written as it is said to be, until that is written again', async () => {
  write('a', 'one')
  const early = startEarlyHashes(root, [])
  early.know('a', statOf('a'), hashOf('one'))
  await early.finish(never)
  expect(early.of('a', statOf('a'))).toBe(hashOf('one'))
  rmSync(join(root, 'a'))
  write('a', 'another one')
  expect(early.of('a', statOf('a'))).toBeUndefined()
})

test('the program that runs inside is a thread that waits for each file, in a thread', async () => {
  const cache = fileURLToPath(new URL('../../../../node_modules/.cache/tutti/agent-server', import.meta.url))
  const table = createHashTable(root, ['a', 'folder/b', 'never'])
  const thread = new Worker(await buildAgentServer(cache), { workerData: table })
  const ended = once(thread, 'exit')
  write('part', 'one')
  renameSync(join(root, 'part'), join(root, 'a'))
  await expect.poll(() => hashOfRow(table, 0, statOf('a'))).toBe(hashOf('one'))
  write('folder/part', large)
  // At once: one that is read while it is written has no hash.
  renameSync(join(root, 'folder/part'), join(root, 'folder/b'))
  await expect.poll(() => hashOfRow(table, 1, statOf('folder/b'))).toBe(hashOf(large))
  setWritten(table)
  await ended
  expect(isEmpty(table, 2)).toBe(true)
})

test('two ends share the rows, and no row has two', () => {
  const files = Array.from({ length: 20 }, (_, at) => `file-${at}`)
  for (let first = 0; first <= files.length; first += 1) {
    const table = createHashTable(root, files)
    const claimed = Array.from({ length: first }, () => claimFirst(table))
    for (let row = claimLast(table); row !== undefined; row = claimLast(table)) claimed.push(row)
    expect(claimFirst(table)).toBeUndefined()
    expect(new Set(claimed).size).toBe(claimed.length)
    expect(claimed.length).toBe(files.length)
  }
})

const isEmpty = ({ hashes }: HashTable, row: number) =>
  hashes.subarray(row * 32, (row + 1) * 32).every((byte) => byte === 0)
