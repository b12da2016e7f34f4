import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathBytes } from '@tutti/workspace'
import type { GitState } from './git-state.ts'
import type { Git } from './restore-repository.ts'

/**
 * Checks submodules out again, at the commits that they had. What was changed in them is there already, and stays.
 *
 * @returns path keys of those that could not be had: their remote cannot be reached from here, or has not the commit.
 */
export async function restoreSubmodules(
  git: Git,
  workdir: string,
  submodules: GitState['submodules'],
): Promise<string[]> {
  const failed: string[] = []
  for (const { path, commit } of submodules) {
    const name = pathBytes(path).toString()
    const folder = join(workdir, name)
    const aside = join(workdir, '.git', 'changed-in-submodule')
    rmSync(aside, { recursive: true, force: true })
    // git clones into an empty folder only.
    if (existsSync(folder)) renameSync(folder, aside)
    mkdirSync(folder, { recursive: true })
    try {
      await git(['-c', 'protocol.file.allow=always', 'submodule', 'update', '--init', '--', name])
      await git(['-C', name, 'checkout', '-q', '--detach', commit])
    } catch {
      failed.push(path)
      // At another commit it would be taken for what it is not.
      rmSync(folder, { recursive: true, force: true })
      mkdirSync(folder, { recursive: true })
    }
    if (existsSync(aside)) moveOver(aside, folder)
    rmSync(aside, { recursive: true, force: true })
  }
  return failed
}

function moveOver(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true, encoding: 'buffer' })) {
    const name = entry.name.toString('latin1')
    const source = pathBytes(`${Buffer.from(from).toString('latin1')}/${name}`)
    const target = pathBytes(`${Buffer.from(to).toString('latin1')}/${name}`)
    if (entry.isDirectory()) {
      mkdirSync(target, { recursive: true })
      moveOver(source.toString(), target.toString())
    } else {
      rmSync(target, { recursive: true, force: true })
      renameSync(source, target)
    }
  }
}
