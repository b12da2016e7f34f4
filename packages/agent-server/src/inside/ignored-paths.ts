import { lstatSync, statSync, type BigIntStats } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import type { FileSkipReason } from '@tutti/protocol'
import { pathBytes, pathKey, sameStat, statTuple, type StatTuple } from '@tutti/workspace'
import { runGit } from './git.ts'

/**
 * Which paths the workspace's ignore rules cover, asked of git itself but through a repository of our own: the agent may break,
 * reconfigure or remove its `.git`, and capture must go on.
 */
export interface IgnoredPaths {
  /** Makes what git needs to be asked, before the agent can have filled the disk. When that fails, it is tried again with a question. */
  prepare(): Promise<void>
  /** Of these path keys, those that are ignored; none when the rules cannot be had, which {@link problems} says. */
  of(keys: readonly string[], signal: AbortSignal): Promise<Set<string>>
  /** Ignored paths that are in the agent's index all the same; undefined when it cannot be read. Asked again only when the index or the rules have changed. */
  forced(signal: AbortSignal): Promise<ReadonlySet<string> | undefined>
  /** Another text whenever `.git/info/exclude` has changed; empty when there is no such file. */
  excludeMark(): string
  /** The rules are not those of before: git is asked again even when it could not be asked then. */
  rulesChanged(): void
  /** By path key: files with rules that nobody can read. */
  problems(): ReadonlyMap<string, FileSkipReason>
}

/** In milliseconds: many times what git takes. */
const askLimitMs = (paths: number) => 5000 + paths / 10
const listLimitMs = 5000

export function createIgnoredPaths(workdir: string, home: string): IgnoredPaths {
  const folder = join(home, '.tutti', 'ignore')
  const excludeKey = '.git/info/exclude'
  const exclude = join(workdir, excludeKey)
  let ready = false
  let gaveUp = false
  let index: StatTuple | undefined
  let forced: ReadonlySet<string> | undefined

  async function prepare(): Promise<void> {
    if (ready) return
    await rm(folder, { recursive: true, force: true })
    // The least that git takes for a repository.
    for (const name of ['objects', 'refs']) await mkdir(join(folder, name), { recursive: true })
    await writeFile(join(folder, 'HEAD'), 'ref: refs/heads/none\n', { flag: 'wx' })
    ready = true
  }

  const ask = (keys: readonly string[], signal: AbortSignal) =>
    runGit(
      [
        `--git-dir=${folder}`,
        `--work-tree=${workdir}`,
        // Opening anything but a file could block for ever.
        ...(fileAt(exclude) ? ['-c', `core.excludesFile=${exclude}`] : []),
        'check-ignore',
        '-z',
        '--stdin',
        '--no-index',
      ],
      { cwd: workdir, input: joinKeys(keys), accept: [0, 1], signal, timeoutMs: askLimitMs(keys.length) },
    )

  return {
    prepare: () => prepare().catch(() => {}),
    excludeMark() {
      const stat = fileAt(exclude)
      return stat ? `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}` : ''
    },
    rulesChanged() {
      gaveUp = false
      index = undefined
    },
    problems() {
      const found = new Map<string, FileSkipReason>()
      if (isSpecial(exclude)) found.set(excludeKey, 'special')
      if (gaveUp) found.set('.gitignore', 'unreadable')
      return found
    },
    async of(keys, signal) {
      if (keys.length === 0 || gaveUp) return new Set()
      for (let attempt = 1; ; attempt += 1) {
        try {
          await prepare()
          return splitKeys(await ask(keys, signal))
        } catch (error) {
          signal.throwIfAborted()
          // The agent may have removed our repository, or swapped a folder for a link under our eyes: once more from the start.
          ready = false
          if (isTimeout(error) || (attempt > 1 && isBlocked(error))) {
            // Too much is captured rather than nothing at all.
            gaveUp = true
            return new Set()
          }
          if (attempt > 1) throw error
        }
      }
    },
    async forced(signal) {
      const own = (name: string) => join(workdir, '.git', name)
      const now = fileAt(own('index'))
      if (now && index && sameStat(now, index)) return forced
      index = undefined
      // What is no file makes git wait or fail.
      const readable = ['HEAD', 'config'].every((name) => fileAt(own(name))) && !isSpecial(exclude)
      forced =
        now && readable
          ? await runGit(['ls-files', '-z', '-i', '-c', '--exclude-standard'], {
              cwd: workdir,
              signal,
              timeoutMs: listLimitMs,
            })
              .then(splitKeys)
              // A broken repository of the agent's.
              .catch(() => {
                // One that was stopped is asked again.
                signal.throwIfAborted()
                return undefined
              })
          : undefined
      if (forced) index = now
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

/** What a path leads to, when that is a file. A path that cannot be looked at leads to none, whatever the agent has made of it. */
function fileAt(path: string): StatTuple | undefined {
  const stats = look(path, statSync)
  return stats?.isFile() ? statTuple(stats) : undefined
}

const isThere = (path: string): boolean => look(path, lstatSync) !== undefined
const isSpecial = (path: string): boolean => isThere(path) && !fileAt(path)

function look(path: string, by: typeof statSync | typeof lstatSync): BigIntStats | undefined {
  try {
    return by(path, { bigint: true, throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

const isTimeout = (error: unknown): boolean =>
  error instanceof TuttiError && error.code === 'deadline_exceeded'

const passing = ['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM']

/** The place for our repository cannot be used, and that will not pass by itself. */
const isBlocked = (error: unknown): boolean =>
  !(error instanceof TuttiError) && !passing.includes((error as NodeJS.ErrnoException).code ?? '')
