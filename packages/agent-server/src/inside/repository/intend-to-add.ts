import { randomUUID } from 'node:crypto'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathBytes } from '@tutti/workspace'
import type { IndexState } from './git-state.ts'
import { joined } from './read-index.ts'
import type { Git } from './restore-repository.ts'

/**
 * Marks these paths in the index. git takes them from a work tree only, and in that of the agent they may have become something else since, or
 * be gone; so they are put into one of their own.
 */
export async function intendToAdd(
  git: Git,
  workdir: string,
  intended: IndexState['intentToAdd'],
): Promise<void> {
  const folder = join(tmpdir(), `.tutti-${randomUUID()}`)
  const below = (path: string) => Buffer.concat([Buffer.from(`${folder}/`), pathBytes(path)])
  const paths: string[] = []
  try {
    mkdirSync(folder)
    for (const entry of intended) {
      const [mode, path] = typeof entry === 'string' ? (['100644', entry] as const) : entry
      // A repository that was in the workspace is not there any more.
      if (mode === '160000') continue
      mkdirSync(below(path.slice(0, Math.max(0, path.lastIndexOf('/')))), { recursive: true })
      if (mode === '120000') symlinkSync('x', below(path))
      else writeFileSync(below(path), '', { mode: mode === '100755' ? 0o755 : 0o644 })
      paths.push(path)
    }
    if (paths.length === 0) return
    const place = [`--git-dir=${join(workdir, '.git')}`, `--work-tree=${folder}`, '--literal-pathspecs']
    await git([...place, 'add', '-N', '-f', '--pathspec-from-file=-', '--pathspec-file-nul'], joined(paths))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
