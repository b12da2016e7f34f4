import { describe, expect, test } from 'vitest'
import { isGitName, pathProblem } from './path-problem.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const problems = (paths: readonly string[]) => paths.filter((path) => pathProblem(bytes(path)) !== undefined)

const aliases = [
  '.git',
  '.GIT',
  '.Git',
  'git~1',
  'GIT~1',
  '.git.',
  '.git ',
  '.git...',
  '.git . ',
  '.git::$INDEX_ALLOCATION',
  '.git .:x',
  'git~1:$DATA',
  '.g\u200cit',
  '.git\ufeff',
  '\ufeff.git',
  '\u206a.git',
  '.git\u200c:x',
  '.git\\config',
  'a\\.git',
  'a\\.git\\config',
  'a\\GIT~1 .\\config',
  '\\.git',
]

describe('SEC-01 a path is refused', () => {
  test.each([
    ['empty', ['']],
    ['absolute or with an empty part', ['/a', 'a//b', 'a/', '/']],
    ['with . or ..', ['.', '..', 'a/../b', './a', '../x', 'a/.', 'a/..']],
    ['with a NUL byte', ['a\0b', '\0']],
    ['too long', ['n'.repeat(256), `a/${'é'.repeat(128)}/b`, 'd/'.repeat(2048) + 'x']],
    ['that leads into .git', aliases],
    ['that leads into .git below a folder', aliases.map((name) => `a/${name}`)],
    ['that leads into .git with more behind', aliases.map((name) => `${name}/config`)],
  ])('%s', (_, paths) => {
    expect(problems(paths)).toEqual(paths)
  })
})

test('every other name of a Linux file system is accepted, a backslash in it too', () => {
  const names =
    `a .gitignore .gitmodules .github/x git a.git .git2 .gitx git~2 git~10 ... .a. -x :(glob) é`.split(' ')
  names.push(' ', 'a\nb', 'a\\b', '\\', 'a\\', '..\\a', 'C:\\a', '.gitignore\\x', 'x:.git', '.g it')
  names.push('n'.repeat(255), 'é'.repeat(127), `${'d/'.repeat(2047)}xy`)
  expect(problems(names)).toEqual([])
})

test('a name need not be UTF-8, and no byte that is none hides an alias', () => {
  expect(pathProblem(Uint8Array.of(0xff, 0xfe))).toBeUndefined()
  expect(pathProblem(Uint8Array.of(0x2e, 0x67, 0xff, 0x69, 0x74))).toBeUndefined()
  expect(pathProblem(Uint8Array.of(0xff, 0x2f, ...bytes('.git')))).toBeDefined()
  expect(pathProblem(Uint8Array.of(0xff, 0x5c, ...bytes('.git')))).toBeDefined()
})

test('a name alone is told too, from a view into a larger buffer', () => {
  const view = bytes('xx.GIT/yy').subarray(2, 6)
  expect(isGitName(view)).toBe(true)
  expect(isGitName(bytes('.gitignore'))).toBe(false)
})
