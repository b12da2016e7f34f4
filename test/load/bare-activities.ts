import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const identity = ['-c', 'user.name=Bench', '-c', 'user.email=bench@localhost']

export interface GitWork {
  readonly repository: string
  readonly workDir: string
}

const git = (cwd: string, ...args: string[]) => run('git', [...identity, ...args], { cwd })

/** The activities of the baseline: nothing, and the git work that an ensemble of one file each cannot do without. */
export const bareActivities = {
  async nothing(): Promise<void> {},

  async cloneAndCommit({ repository, workDir, index }: GitWork & { readonly index: number }): Promise<void> {
    const clone = join(workDir, `clone-${index}`)
    await mkdir(workDir, { recursive: true })
    await run('git', ['clone', '--quiet', '--shared', repository, clone])
    await writeFile(join(clone, `file-${index}.txt`), `${index}\n`)
    await git(clone, 'add', '-A')
    await git(clone, 'commit', '--quiet', '-m', `attempt ${index}`)
    await git(clone, 'push', '--quiet', repository, `+HEAD:refs/bench/${index}`)
  },

  async mergeAndPush({
    repository,
    workDir,
    children,
  }: GitWork & { readonly children: number }): Promise<void> {
    const clone = join(workDir, 'clone-0')
    await git(clone, 'fetch', '--quiet', repository, '+refs/bench/*:refs/bench/*')
    const base = (await git(clone, 'rev-parse', 'origin/HEAD')).stdout.trim()
    let head = base
    for (let index = 0; index < children; index += 1) {
      const merged = await git(clone, 'merge-tree', '--write-tree', head, `refs/bench/${index}`)
      const tree = merged.stdout.trim()
      head = (await git(clone, 'commit-tree', tree, '-p', head, '-m', `merge ${index}`)).stdout.trim()
    }
    await git(clone, 'push', '--quiet', repository, `${head}:refs/heads/bench-result-${Date.now()}`)
  },
}

export type BareActivities = typeof bareActivities
