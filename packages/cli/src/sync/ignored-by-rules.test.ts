import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createLocalTree } from './local-tree.ts'

test.each([false, true])(
  'rules match as git matches them where core.ignorecase is %s',
  async (ignoresCase) => {
    const folder = mkdtempSync(join(tmpdir(), 'tutti-ignored-by-rules-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const names = [
      '.gitignore',
      'Build/Main.java',
      'build/out',
      'NOTES.LOG',
      'notes.log',
      'sub/.gitignore',
      'sub/KEEP',
      'sub/keep',
    ]
    for (const name of names) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), name === 'sub/.gitignore' ? 'keep\n' : 'build/\n*.log\n')
    }
    mkdirSync(join(folder, '.tutti'))
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', `core.ignorecase=${ignoresCase}`, '-c', 'core.excludesFile=', ...args], {
        cwd: folder,
        encoding: 'utf8',
      })
    git('init', '--quiet')
    const untracked = git('ls-files', '-z', '--others', '--exclude-standard').split('\0').filter(Boolean)
    const scan = await createLocalTree(folder, ignoresCase).scan(() => false, new AbortController().signal)
    // A folder of which nothing goes is no empty one.
    expect([...scan.paths.keys()].sort()).toEqual(untracked.sort())
    expect(untracked.includes('NOTES.LOG')).toBe(!ignoresCase)
  },
)
