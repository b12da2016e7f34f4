import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { BlobId } from '@tutti/core'
import { afterEach, describe, expect, test } from 'vitest'
import type { CapturedChange, FileState, PathState } from './file-state.ts'
import { foldChanges, untilConflict } from './fold-changes.ts'
import { manifestDigest } from './manifest-digest.ts'
import { pathBytes, pathKey } from './path-key.ts'
import { readStableFile, readStableLink } from './read-stable.ts'
import { scanTree } from './scan-tree.ts'
import { isRacy, sameStat, statTuple } from './stat-tuple.ts'

const folders: string[] = []
const makeFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-workspace-'))
  folders.push(folder)
  return folder
}
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const makeFifo = (path: string) => execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', path])

const hash = (digit: string): BlobId => `sha256_${digit.repeat(64)}`
const file = (path: string, digit = '0', mode: FileState['mode'] = '100644'): FileState => ({
  path: pathBytes(path),
  fileType: mode === '120000' ? 'symlink' : 'file',
  mode,
  size: 1,
  hash: hash(digit),
})

const folder = (path: string): PathState => ({ path: pathBytes(path), fileType: 'dir', mode: '040000' })

describe('paths', () => {
  test('keys keep every byte and the order of bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (left, right) => {
        expect(Buffer.compare(pathBytes(pathKey(left)), left)).toBe(0)
        const byKey = pathKey(left) < pathKey(right) ? -1 : pathKey(left) > pathKey(right) ? 1 : 0
        expect(byKey).toBe(Buffer.compare(left, right))
      }),
    )
  })
})

describe('the manifest digest', () => {
  test('depends on the set of states, not on their order', () => {
    const states = [file('a'), file('a/b', '1'), file('\xff', '2', '100755'), file('l', '3', '120000')]
    expect(manifestDigest(states)).toBe(manifestDigest(states.toReversed()))
    expect(manifestDigest([])).toMatch(/^[0-9a-f]{64}$/)
  })

  test('differs by path, mode and content, however they could be confused', () => {
    const sets: PathState[][] = [
      [],
      [file('a')],
      [file('b')],
      [file('a', '1')],
      [file('a', '0', '100755')],
      [folder('a')],
      [file('a'), file('b')],
      [file(`a\n100644 ${hash('0')} 1 b`)],
    ]
    expect(new Set(sets.map(manifestDigest)).size).toBe(sets.length)
  })
})

test('folding keeps the last change of each path, deletions first and deepest first', () => {
  const wrote = (path: string, digit: string): CapturedChange => ({
    action: 'modified',
    state: file(path, digit),
  })
  const gone = (path: string): CapturedChange => ({ action: 'deleted', path: pathBytes(path) })
  const folded = foldChanges([
    wrote('x', '1'),
    gone('x'),
    gone('d/e'),
    gone('d'),
    wrote('x/y', '2'),
    wrote('a', '3'),
    wrote('a', '4'),
  ])
  expect(folded).toEqual([gone('x'), gone('d/e'), gone('d'), wrote('a', '4'), wrote('x/y', '2')])
  const flips = [wrote('g/in', '1'), wrote('h', '2'), wrote('g', '3'), wrote('h/in', '4'), wrote('g/in', '5')]
  expect(foldChanges(flips.slice(0, 4))).toEqual([wrote('g', '3'), wrote('h/in', '4')])
  expect(foldChanges(flips)).toEqual([wrote('g/in', '5'), wrote('h/in', '4')])
  expect([...untilConflict(flips, (change) => change)]).toEqual([
    flips.slice(0, 2),
    flips.slice(2, 4),
    flips.slice(4),
  ])
})

describe('a scan', () => {
  test('finds files and links under any name and never enters .git or what it is told to leave', async () => {
    const root = makeFolder()
    for (const name of ['.git', 'sub/.git', '.GIT', 'left/out', 'deep/er', 'hollow'])
      mkdirSync(join(root, name), { recursive: true })
    for (const name of ['.git/x', 'sub/.git/x', 'sub/file', 'left/out/x', 'deep/er/x'])
      writeFileSync(join(root, name), '')
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]), '')
    symlinkSync('deep', join(root, 'link'))
    makeFifo(join(root, 'pipe'))
    const tree = await scanTree(root, { prune: (key) => key === 'left' })
    expect([...tree.files.keys()].sort()).toEqual(['deep/er/x', 'link', 'sub/file', '\xff'])
    expect(tree.files.get('link')?.type).toBe('symlink')
    expect([tree.folders.toSorted(), tree.special, tree.unsafe]).toEqual([
      ['deep', 'deep/er', 'hollow', 'sub'],
      ['pipe'],
      ['.GIT'],
    ])
  })

  test('fails for a root that is not there: that is not an empty one', async () => {
    await expect(scanTree(join(makeFolder(), 'missing'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('stops when it is told to', async () => {
    await expect(scanTree(makeFolder(), { signal: AbortSignal.abort() })).rejects.toThrow('abort')
  })

  test('takes 10,000 files in well under a second', async () => {
    const root = makeFolder()
    for (let index = 0; index < 10_000; index += 1) {
      if (index % 100 === 0) mkdirSync(join(root, String(index / 100)))
      writeFileSync(join(root, String(Math.floor(index / 100)), String(index)), '')
    }
    const start = performance.now()
    expect((await scanTree(root)).files.size).toBe(10_000)
    expect(performance.now() - start).toBeLessThan(2000)
  })
})

describe('reading', () => {
  test('gives the bytes, and whether they held still', () => {
    const path = join(makeFolder(), 'file')
    writeFileSync(path, 'content')
    const content = readStableFile(Buffer.from(path))
    expect([content.bytes.toString(), content.settled]).toEqual(['content', true])
    expect(sameStat(content.stat, statTuple(lstatSync(path, { bigint: true })))).toBe(true)
  })

  test('follows no link, waits for no fifo, and keeps a target’s bytes', () => {
    const folder = makeFolder()
    const target = Buffer.from([0x74, 0xff])
    symlinkSync(target, join(folder, 'link'))
    makeFifo(join(folder, 'pipe'))
    expect(() => readStableFile(Buffer.from(join(folder, 'link')))).toThrow(/ELOOP/)
    expect(() => readStableFile(Buffer.from(join(folder, 'pipe')))).toThrow('not a regular file')
    expect(Buffer.compare(readStableLink(Buffer.from(join(folder, 'link'))).bytes, target)).toBe(0)
  })

  test('a change of mode or of content under old times shows in the tuple', () => {
    const path = join(makeFolder(), 'file')
    writeFileSync(path, 'one')
    const stat = () => statTuple(lstatSync(path, { bigint: true }))
    const first = stat()
    chmodSync(path, 0o755)
    const second = stat()
    expect(sameStat(first, second)).toBe(false)
    const { atime, mtime } = lstatSync(path)
    execFileSync('sleep', ['0.02'])
    writeFileSync(path, 'two')
    utimesSync(path, atime, mtime)
    expect(sameStat(second, stat())).toBe(false)
    const nowNs = BigInt(Date.now()) * 1_000_000n
    expect(isRacy(stat(), nowNs)).toBe(true)
    expect(isRacy(stat(), nowNs + 10_000_000_000n)).toBe(false)
  })
})
