import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The base commit: odd names, attributes, links, what is tracked although ignored, and a submodule whose remote is a folder of the tree. */
export function makeBase(folder: string): void {
  const git = (cwd: string, ...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], { cwd })
      .toString()
      .trim()
  const odd = Buffer.concat([Buffer.from(`${folder}/odd `), Buffer.from([0xff, 0x0a])])
  writeFileSync(odd, 'odd')
  writeFileSync(join(folder, '.gitattributes'), '*.crlf text eol=crlf\n')
  writeFileSync(join(folder, 'base.crlf'), 'a\r\nb\r\n')
  writeFileSync(join(folder, 'tool.sh'), '#!/bin/sh\n')
  chmodSync(join(folder, 'tool.sh'), 0o755)
  symlinkSync('one/two', join(folder, 'to-two'))
  mkdirSync(join(folder, 'one/two'), { recursive: true })
  for (const name of ['a', 'b', 'two/c']) writeFileSync(join(folder, 'one', name), `${name}\n`)
  writeFileSync(join(folder, 'base.log'), 'tracked\n')
  git(folder, 'add', '-f', 'base.log')

  const lib = join(folder, 'lib')
  mkdirSync(join(lib, 'deep'), { recursive: true })
  for (const name of ['x', 'y', 'deep/z', '.gitignore']) writeFileSync(join(lib, name), '*.tmp\n')
  git(lib, 'init', '-q', '-b', 'main')
  git(lib, 'add', '-A')
  git(lib, 'commit', '-qm', 'lib')
  const commit = git(lib, 'rev-parse', 'HEAD')
  renameSync(join(lib, '.git'), join(folder, 'lib.git'))
  for (const name of ['hooks', 'logs', 'index', 'branches'])
    rmSync(join(folder, 'lib.git', name), { recursive: true, force: true })
  rmSync(lib, { recursive: true })
  mkdirSync(lib)
  writeFileSync(join(folder, '.gitmodules'), '[submodule "lib"]\n\tpath = lib\n\turl = ./lib.git\n')
  git(folder, 'update-index', '--add', '--cacheinfo', `160000,${commit},lib`)
}
