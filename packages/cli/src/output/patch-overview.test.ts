import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pc from 'picocolors'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { patchOverview } from './patch-overview.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-patch-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], { cwd: folder })
const write = (name: string, content: string | Uint8Array) => writeFileSync(join(folder, name), content)
const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index}\n`).join('')

function diffOf(before: () => void, after: () => void): Uint8Array {
  git('init', '-q')
  before()
  git('add', '-A')
  git('commit', '-qm', 'before', '--allow-empty')
  after()
  git('add', '-A')
  return git('diff', '--cached', '--binary', '-M')
}

const overview = { paint: pc.createColors(false), width: 80, files: 20, lines: 40 }

test('lists each file with its counts and what happened to it', () => {
  const patch = diffOf(
    () => {
      write('gone.txt', numbers(3))
      write('old name.txt', numbers(9))
      write('a b.txt', '-- a line that looks like a header\nx\n')
      write('picture', Buffer.from([0, 1, 2]))
    },
    () => {
      rmSync(join(folder, 'gone.txt'))
      git('mv', 'old name.txt', 'new name.txt')
      write('a b.txt', '++ another\nx\n')
      write('picture', Buffer.from([0, 9]))
      write('naïve.txt', 'new\n')
      write('empty', '')
    },
  )
  expect(patchOverview(patch, overview).list.join('\n')).toMatchInlineSnapshot(`
    "a b.txt       +1 -1
    empty                new
    gone.txt         -3  deleted
    naïve.txt     +1     new
    new name.txt         renamed
    picture              binary"
  `)
})

test('a long file does not hide the others', () => {
  const patch = diffOf(
    () => write('a-long.txt', numbers(500)),
    () => {
      rmSync(join(folder, 'a-long.txt'))
      for (let index = 1; index <= 3; index += 1) write(`b${index}.txt`, `content ${index}\n`)
    },
  )
  const { diff } = patchOverview(patch, overview)
  for (let index = 1; index <= 3; index += 1) expect(diff).toContain(`+content ${index}`)
  expect(diff).toContain('… 471 more lines of a-long.txt')
  expect(diff.length).toBeLessThanOrEqual(overview.lines + 1)
})

test('many files are bounded and counted', () => {
  const patch = diffOf(
    () => {},
    () => {
      for (let index = 10; index < 40; index += 1) write(`file${index}.txt`, 'x\n')
    },
  )
  const { list, diff } = patchOverview(patch, overview)
  expect(list).toHaveLength(21)
  expect(list.at(-1)).toBe('… and 10 more files')
  expect(diff.at(-1)).toBe('… and 24 more files')
  expect(diff.length).toBeLessThanOrEqual(overview.lines + 1)
})
