import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathBytes } from '@tutti/workspace'
import { diskFull } from '../disk-full.ts'
import { removeEmpty } from '../remove-empty.ts'
import type { GitState } from './git-state.ts'
import type { Git } from './restore-repository.ts'

/**
 * Checks submodules out again, at the commits that they had. What was changed in them is there already, and stays; what was removed from them
 * goes again.
 *
 * @returns path keys of those that could not be had: their remote cannot be reached from here, or has not the commit.
 * @throws what a full disk makes fail
 */
export async function restoreSubmodules(
  git: Git,
  workdir: string,
  { submodules, gone = [] }: Pick<GitState, 'submodules' | 'gone'>,
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
      for (const key of gone) if (key.startsWith(`${path}/`)) removeFile(Buffer.from(workdir), key)
    } catch (error) {
      if (diskFull(error, workdir)) throw error
      failed.push(path)
      // At another commit it would be taken for what it is not.
      rmSync(folder, { recursive: true, force: true })
      mkdirSync(folder, { recursive: true })
    }
    if (existsSync(aside)) moveOver(Buffer.from(aside), Buffer.from(folder))
    rmSync(aside, { recursive: true, force: true })
  }
  const folders = gone.filter((key) => !submodules.some(({ path }) => key.startsWith(`${path}/`)))
  // The longest first: a folder goes after what is in it.
  for (const key of folders.sort((a, b) => b.length - a.length))
    removeEmpty(below(Buffer.from(workdir), pathBytes(key)))
  return failed
}

const below = (folder: Buffer, name: Uint8Array) => Buffer.concat([folder, Buffer.from('/'), name])

/** And the folders that hold nothing then: one that the agent left empty comes back as itself. */
function removeFile(root: Buffer, key: string): void {
  rmSync(below(root, pathBytes(key)), { recursive: true, force: true })
  for (let slash = key.lastIndexOf('/'); slash > 0; slash = key.lastIndexOf('/', slash - 1)) {
    if (!removeEmpty(below(root, pathBytes(key.slice(0, slash))))) return
  }
}

function moveOver(from: Buffer, to: Buffer): void {
  for (const entry of readdirSync(from, { withFileTypes: true, encoding: 'buffer' })) {
    const source = below(from, entry.name)
    const target = below(to, entry.name)
    const isFolder = lstatSync(target, { throwIfNoEntry: false })?.isDirectory() === true
    if (entry.isDirectory() && isFolder) moveOver(source, target)
    else {
      rmSync(target, { recursive: true, force: true })
      renameSync(source, target)
    }
  }
}
