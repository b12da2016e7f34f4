import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** A real git repository of a test's own. */
export interface TestRepository {
  readonly path: string
  git(...args: readonly string[]): string
  /** Paths and contents of a commit's tree; links and modes as git shows them. */
  tree(commit: string): Record<string, string>
  remove(): void
}

export function createTestRepository(files: Readonly<Record<string, string>>): TestRepository {
  const path = mkdtempSync(join(tmpdir(), 'tutti-repository-'))
  const env = { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' }
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: path, env, encoding: 'utf8', maxBuffer: 64 << 20 })
  git('init', '-q', '-b', 'main')
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), content)
  }
  git('add', '-A')
  git(
    '-c',
    'user.name=Test',
    '-c',
    'user.email=test@localhost',
    'commit',
    '-q',
    '--allow-empty',
    '-m',
    'start',
  )
  return {
    path,
    git,
    tree(commit) {
      const lines = git('ls-tree', '-r', '-z', commit)
        .split('\0')
        .filter((line) => line !== '')
      return Object.fromEntries(
        lines.map((line) => {
          const [meta = '', name = ''] = line.split('\t')
          const [mode, , id = ''] = meta.split(' ')
          return [name, `${mode} ${git('cat-file', 'blob', id)}`]
        }),
      )
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}
