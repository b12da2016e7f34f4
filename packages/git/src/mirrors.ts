import { createHash } from 'node:crypto'
import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { checkRefName, createSingleFlight, TuttiError, throwIfCancelled } from '@tutti/core'
import { LRUCache } from 'lru-cache'
import { identityEnvironment } from './hardened.ts'
import { withLockRepair } from './lock-repair.ts'
import { parseLocation, type Location } from './location.ts'
import { createMirror, type KnownHashes } from './mirror.ts'
import type { Mirror, Mirrors } from './port.ts'
import { withProcessLock } from './process-lock.ts'
import { mayBeHash } from './ref-name.ts'
import { createGitRunner, type GitLogEntry, type GitRunner } from './run-git.ts'
import { defaultBranchOf, fetchSource, hasRef, readSourceHead, sourceRefs } from './source.ts'

export interface MirrorsOptions {
  /** Folder of all mirrors; only Tutti writes there. Made when it is not there. */
  readonly root: string
  /** Default `git` of PATH; 2.38 or newer. */
  readonly gitPath?: string
  readonly log?: (entry: GitLogEntry) => void
}

const [keptMirrors, keptHashes] = [100, 10_000]

/**
 * Bare mirrors below `root`, one per location, named by the hash of the location. Making and refreshing one is locked across
 * processes; everything else works on different refs and needs no lock.
 */
export function createMirrors({ root: folder, gitPath = 'git', log }: MirrorsOptions): Mirrors {
  const root = resolve(folder)
  const home = join(root, '.home')
  const git = createGitRunner({ gitPath, home, ...(log ? { log } : {}) })
  const once = createSingleFlight<string, Mirror>()

  const known = new LRUCache<string, KnownHashes>({ max: keptMirrors })
  const knownOf = (path: string): KnownHashes => {
    const hashes = known.get(path) ?? new LRUCache<string, string>({ max: keptHashes })
    known.set(path, hashes)
    return hashes
  }

  const pathOf = ({ address }: Location) =>
    join(root, `${createHash('sha256').update(address).digest('hex').slice(0, 32)}.git`)

  const refresh = async (location: Location, signal: AbortSignal, begin: () => void): Promise<Mirror> => {
    await mkdir(home, { recursive: true, mode: 0o700 })
    const path = pathOf(location)
    return await withProcessLock(`${path}.lock`, signal, async () => {
      begin()
      const head = await readSourceHead(git, location, signal)
      if (!(await exists(path))) await makeMirror(git, path, location, head.commit?.length === 64, signal)
      if (head.commit === undefined && head.branches.size === 0) await makeEmptyRoot(git, path, signal)
      else {
        await withLockRepair(path, signal, () =>
          fetchSource(git, path, location, head.commit !== undefined, signal),
        )
      }
      return createMirror(git, path, location, knownOf(path))
    })
  }

  return {
    async open(text, signal) {
      const location = parseLocation(text)
      // Whoever asks while a refresh still waits for its turn gets the same one: it will be new enough for both.
      return await once(pathOf(location), signal, (leave) => refresh(location, signal, leave))
    },

    async attach(text, signal) {
      const location = parseLocation(text)
      throwIfCancelled(signal)
      const path = pathOf(location)
      if (await exists(path)) return createMirror(git, path, location, knownOf(path))
      throw new TuttiError('not_found', 'There is no mirror of this repository yet; open it first.', {
        location: location.address,
      })
    },

    async remove(text, signal) {
      const path = pathOf(parseLocation(text))
      if (!(await exists(`${path}.lock`))) return
      await withProcessLock(`${path}.lock`, signal, () => rm(path, { recursive: true, force: true }))
      await rm(`${path}.lock`, { force: true })
      known.delete(path)
    },

    async defaultBranch(text, signal) {
      const location = parseLocation(text)
      await mkdir(home, { recursive: true, mode: 0o700 })
      return defaultBranchOf(await readSourceHead(git, location, signal))
    },

    async mayHaveRef(text, ref, signal) {
      const location = parseLocation(text)
      if (ref === 'HEAD' || mayBeHash(checkRefName(ref, 'ref'))) return true
      await mkdir(home, { recursive: true, mode: 0o700 })
      return hasRef(git, location, ref, signal)
    },
  }
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** Appears under its name complete, or not at all. */
async function makeMirror(
  git: GitRunner,
  path: string,
  { address }: Location,
  isSha256: boolean,
  signal: AbortSignal,
): Promise<void> {
  // The lock is held, so what lies there is from somebody who died.
  const temporary = `${path}.new`
  await rm(temporary, { recursive: true, force: true })
  try {
    await git.bytes(
      [
        'init',
        '--quiet',
        '--bare',
        '--template=',
        `--object-format=${isSha256 ? 'sha256' : 'sha1'}`,
        '--',
        temporary,
      ],
      { signal },
    )
    await writeFile(join(temporary, 'description'), `Tutti's mirror of ${address}\n`)
    await rename(temporary, path)
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

/** A source without a commit begins with an empty tree; the same one in every mirror, so that agents can start from it. */
async function makeEmptyRoot(git: GitRunner, path: string, signal: AbortSignal): Promise<void> {
  const options = { gitDir: path, signal }
  const tree = (
    await git.bytes(['hash-object', '-t', 'tree', '-w', '--stdin'], { ...options, input: Buffer.alloc(0) })
  ).toString()
  const commit = await git.bytes(['commit-tree', tree.trim()], {
    ...options,
    env: identityEnvironment(0),
    input: Buffer.from('Empty repository\n'),
  })
  await git.text(path, ['update-ref', '--no-deref', `${sourceRefs}/HEAD`, commit.toString().trim()], signal)
}
