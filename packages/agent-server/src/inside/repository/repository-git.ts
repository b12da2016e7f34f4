import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runGit, type GitRun } from '../git.ts'

/** git on the agent's repository, with a place of ours for what we write: its own folder stays as the agent made it. */
export interface RepositoryGit {
  readonly gitDir: string
  /** Our folder; made when it is not there. */
  scratch(): Promise<string>
  /** What it writes goes to the scratch folder; it reads both. */
  writing(args: readonly string[], run?: Partial<GitRun>): Promise<Buffer>
  reading(args: readonly string[], run?: Partial<GitRun>): Promise<Buffer>
  /** On the repository that this folder is the work tree of. */
  inside(folder: string, args: readonly string[]): Promise<Buffer>
}

/** The agent may have made git wait for ever. In milliseconds. */
const limitMs = 30_000

/** Keeps git from taking the repository around a folder for that of the folder. */
export const onlyAt = (folder: string) => ({ GIT_CEILING_DIRECTORIES: dirname(folder) })

export function createRepositoryGit(workdir: string, home: string, signal: AbortSignal): RepositoryGit {
  const gitDir = join(workdir, '.git')
  const folder = join(home, '.tutti', 'repository')
  const objects = join(folder, 'objects')
  const ownObjects = join(gitDir, 'objects')
  const git = (args: readonly string[], env: Readonly<Record<string, string>>, run: Partial<GitRun> = {}) =>
    runGit([`--git-dir=${gitDir}`, `--work-tree=${workdir}`, ...args], {
      cwd: workdir,
      signal,
      timeoutMs: limitMs,
      ...run,
      env: { ...env, ...run.env },
    })
  /** In a list of folders a colon parts them, unless they are quoted. */
  const quoted = (path: string) => `"${path.replace(/["\\]/g, '\\$&')}"`
  const scratch = async () => {
    await mkdir(objects, { recursive: true })
    return folder
  }
  return {
    gitDir,
    scratch,
    async writing(args, run) {
      await scratch()
      return git(
        args,
        { GIT_OBJECT_DIRECTORY: objects, GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(ownObjects) },
        run,
      )
    },
    inside: (folder, args) =>
      runGit(['-C', folder, ...args], { cwd: folder, signal, timeoutMs: limitMs, env: onlyAt(folder) }),
    async reading(args, run) {
      await scratch()
      return git(args, { GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(objects) }, run)
    },
  }
}
