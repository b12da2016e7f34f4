import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isModulesPath } from './modules-path.ts'

let folder: string
let target: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-modules-'))
  execFileSync('git', ['init', '-q'], { cwd: folder })
  target = execFileSync('git', ['hash-object', '-w', '--stdin'], { cwd: folder, input: 'x' })
    .toString()
    .trim()
})
afterAll(() => rmSync(folder, { recursive: true }))

const names = [
  '.gitmodules',
  '.GitModules',
  '.gitmodules.',
  '.gitmodules .',
  '.gitmodules:x',
  '.gitmodulesx',
  'gitmodules',
]
const short = [
  'gitmod~1',
  'GITMOD~4',
  'gitmod~5',
  'gi7eba~1',
  'gi7eb~12',
  'gi7d29~1',
  'GI7EBA~9',
  '~1000000',
  '~100000',
]
const around = ['', 'a/', 'a\\', 'a/b/']
const behind = ['', '/x', '\\x', '/x/y', 'x']
const paths = [...names, ...short].flatMap((name) =>
  around.flatMap((front) => behind.map((end) => `${front}${name}${end}`)),
)

test('says of each path what git says of a link there', () => {
  const git = new Map(
    paths.map((path) => {
      const args = ['update-index', '--add', '--replace', '--cacheinfo', `120000,${target},${path}`]
      return [path, spawnSync('git', args, { cwd: folder }).status !== 0]
    }),
  )
  const ours = new Map(paths.map((path) => [path, isModulesPath(Buffer.from(path))]))
  expect(ours).toEqual(git)
})
