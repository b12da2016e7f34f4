import { lstatSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathBytes, pathKey, sameStat, statTuple, type StatTuple } from '@tutti/workspace'
import { runGit } from './git.ts'

/**
 * Which paths the workspace's ignore rules cover, asked of git itself but through a repository of our own: the agent may break,
 * reconfigure or remove its `.git`, and capture must go on.
 */
export interface IgnoredPaths {
  /** Of these path keys, those that are ignored. */
  of(keys: readonly string[], signal: AbortSignal): Promise<Set<string>>
  /** Ignored paths that the agent has put into its index all the same. Asked again only when its index changed. */
  forced(signal: AbortSignal): Promise<ReadonlySet<string>>
  /** Another text whenever `.git/info/exclude` has changed. */
  excludeMark(): string
}

export function createIgnoredPaths(workdir: string, home: string): IgnoredPaths {
  const folder = join(home, '.tutti', 'ignore')
  const exclude = join(workdir, '.git', 'info', 'exclude')
  let ready = false
  let index: StatTuple | undefined
  let forced: ReadonlySet<string> = new Set()

  async function prepare(): Promise<void> {
    if (ready) return
    await rm(folder, { recursive: true, force: true })
    // The least that git takes for a repository.
    for (const name of ['objects', 'refs']) await mkdir(join(folder, name), { recursive: true })
    await writeFile(join(folder, 'HEAD'), 'ref: refs/heads/none\n')
    ready = true
  }

  const ask = (keys: readonly string[], signal: AbortSignal) =>
    runGit(
      [
        `--git-dir=${folder}`,
        `--work-tree=${workdir}`,
        '-c',
        `core.excludesFile=${exclude}`,
        'check-ignore',
        '-z',
        '--stdin',
        '--no-index',
      ],
      { cwd: workdir, input: joinKeys(keys), accept: [0, 1], signal },
    )

  return {
    excludeMark() {
      const stat = statOf(exclude)
      return stat ? `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}` : ''
    },
    async of(keys, signal) {
      if (keys.length === 0) return new Set()
      await prepare()
      try {
        return splitKeys(await ask(keys, signal))
      } catch (error) {
        signal.throwIfAborted()
        // The agent may have removed our repository, or swapped a folder for a link under our eyes: once more from the start.
        ready = false
        await prepare()
        return splitKeys(await ask(keys, signal).catch(() => Promise.reject(error)))
      }
    },
    async forced(signal) {
      const now = statOf(join(workdir, '.git', 'index'))
      if (now && index && sameStat(now, index)) return forced
      index = now
      forced = now
        ? await runGit(['ls-files', '-z', '-i', '-c', '--exclude-standard'], {
            cwd: workdir,
            signal,
            timeoutMs: 5000,
          })
            .then(splitKeys)
            // A broken repository of the agent's: then nothing is in its index.
            .catch(() => new Set<string>())
        : new Set()
      return forced
    },
  }
}

/** The leading `./` keeps a name that starts with a colon from being read as pathspec magic. */
const joinKeys = (keys: readonly string[]): Buffer => pathBytes(keys.map((key) => `./${key}\0`).join(''))

const splitKeys = (output: Buffer): Set<string> =>
  new Set(
    pathKey(output)
      .split('\0')
      .filter((key) => key !== '')
      .map((key) => (key.startsWith('./') ? key.slice(2) : key)),
  )

function statOf(path: string): StatTuple | undefined {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return stats && statTuple(stats)
}
