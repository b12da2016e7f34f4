import { createHash } from 'node:crypto'
import { mkdir, rm, stat, utimes } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Archive } from '@tutti/blob-store'
import { checkRefName, createSingleFlight, TuttiError, throwIfCancelled } from '@tutti/core'
import { withProcessLock } from '@tutti/processes'
import { LRUCache } from 'lru-cache'
import { createCommitArchive } from './commit-archive.ts'
import { identityEnvironment } from './hardened.ts'
import { withLockRepair } from './lock-repair.ts'
import { parseLocation, type Location } from './location.ts'
import { areJoined, exists, makeStores, type MirrorStores } from './mirror-stores.ts'
import { createMirror, type KnownHashes } from './mirror.ts'
import type { Mirror, Mirrors } from './port.ts'
import { setAsideDamaged } from './set-aside-damaged.ts'
import { isWholeCommit } from './whole-commit.ts'
import { shortageOf } from './shortage.ts'
import { sweepMirrors } from './sweep-mirrors.ts'
import { checkHash, mayBeHash } from './ref-name.ts'
import { createGitRunner, type GitLogEntry, type GitRunner } from './run-git.ts'
import { defaultBranchOf, fetchSource, hasRef, readSourceHead, sourceRefs } from './source.ts'

export interface MirrorsOptions {
  /** Folder of all mirrors; only Tutti writes there. Made when it is not there. */
  readonly root: string
  /** Default `git` of PATH; 2.38 or newer. */
  readonly gitPath?: string
  readonly log?: (entry: GitLogEntry) => void
  /** Where commits are kept for ever; without it they live as long as the mirrors. */
  readonly archive?: Archive
}

const [keptMirrors, keptHashes] = [100, 10_000]
/** A sweep does not wait for whoever fetches a source: it comes again. */
const lockPatienceMs = 200

/**
 * Mirrors below `root`, one per location, named by the hash of the location, each with the source's own store beside it. Making
 * and refreshing one is locked across processes; everything else works on different refs and needs no lock.
 */
export function createMirrors({ root: folder, gitPath = 'git', log, archive }: MirrorsOptions): Mirrors {
  const root = resolve(folder)
  const home = join(root, '.home')
  const git = createGitRunner({ gitPath, home, ...(log ? { log } : {}) })
  const once = createSingleFlight<string, Mirror>()
  const commits = archive && createCommitArchive(git, archive)

  const known = new LRUCache<string, KnownHashes>({ max: keptMirrors })
  const knownOf = (path: string): KnownHashes => {
    const hashes = known.get(path) ?? new LRUCache<string, string>({ max: keptHashes })
    known.set(path, hashes)
    return hashes
  }

  const storesOf = ({ address }: Location): MirrorStores => {
    const name = createHash('sha256').update(address).digest('hex').slice(0, 32)
    return { mirror: join(root, `${name}.git`), source: join(root, `${name}.source.git`) }
  }
  /** Undefined for a location of which there is none. */
  const mirrorPathOf = (text: string): string | undefined => {
    try {
      return storesOf(parseLocation(text)).mirror
    } catch {
      return undefined
    }
  }
  const withLock = async <T>({ mirror }: MirrorStores, signal: AbortSignal, work: () => Promise<T>) => {
    await mkdir(home, { recursive: true, mode: 0o700 })
    return await withProcessLock(`${mirror}.lock`, signal, work).catch((thrown: unknown) => {
      throw shortageOf(thrown) ?? thrown
    })
  }
  const mirrorOf = (stores: MirrorStores, location: Location) =>
    createMirror(git, stores, location, knownOf(stores.mirror), commits)

  const make = async (
    stores: MirrorStores,
    { address }: Location,
    isSha256: boolean,
    signal: AbortSignal,
  ) => {
    // What was known of a mirror that somebody has removed is known no more.
    if (!(await areJoined(stores))) known.delete(stores.mirror)
    await makeStores(git, stores, address, isSha256, signal)
  }

  const refresh = async (location: Location, signal: AbortSignal, begin: () => void): Promise<Mirror> => {
    const stores = storesOf(location)
    return await withLock(stores, signal, async () => {
      begin()
      const head = await readSourceHead(git, location, signal)
      await make(stores, location, head.commit?.length === 64, signal)
      const { source } = stores
      if (head.commit === undefined && head.branches.size === 0) await makeEmptyRoot(git, source, signal)
      else {
        await withLockRepair(source, signal, () =>
          fetchSource(git, source, location, head.commit !== undefined, signal),
        )
      }
      // When it was last opened, for the sweep.
      await utimes(stores.mirror, new Date(), new Date())
      return mirrorOf(stores, location)
    })
  }

  return {
    async open(text, signal) {
      const location = parseLocation(text)
      // Whoever asks while a refresh still waits for its turn gets the same one: it will be new enough for both.
      return await once(storesOf(location).mirror, signal, (leave) => refresh(location, signal, leave))
    },

    async attach(text, signal) {
      const location = parseLocation(text)
      throwIfCancelled(signal)
      const stores = storesOf(location)
      if (await areJoined(stores)) return mirrorOf(stores, location)
      if (await exists(stores.mirror)) {
        await withLock(stores, signal, () => make(stores, location, false, signal))
        return mirrorOf(stores, location)
      }
      throw new TuttiError('not_found', 'There is no mirror of this repository yet; open it first.', {
        location: location.address,
      })
    },

    async restore(text, commit, signal) {
      const location = parseLocation(text)
      const stores = storesOf(location)
      if (await areJoined(stores)) {
        const tree = `${checkHash(commit, 'commit')}^{tree}`
        const found = await git.run(['cat-file', '-e', tree], { gitDir: stores.mirror, signal })
        if (found.exitCode === 0) return mirrorOf(stores, location)
      }
      if (!commits)
        throw new TuttiError('not_found', `The mirror has no commit ${commit}, and there is no archive.`, {
          commit,
        })
      return await withLock(stores, signal, async () => {
        await make(stores, location, commit.length === 64, signal)
        await commits.restore(stores, commit, signal)
        return mirrorOf(stores, location)
      })
    },

    async repair(text, { commit, base }, signal) {
      const location = parseLocation(text)
      const stores = storesOf(location)
      for (const hash of [commit, base]) checkHash(hash, 'commit')
      const isWhole = async () =>
        (await areJoined(stores)) && (await isWholeCommit(git, stores, { commit, base }, signal))
      if (await isWhole()) return false
      await withLock(stores, signal, async () => {
        await make(stores, location, commit.length === 64, signal)
        await setAsideDamaged(git, stores.mirror, signal)
        await commits?.replace(stores, { commit, base }, signal)
      })
      if (await isWhole()) return true
      const where = commits ? 'neither the mirror nor the archive has' : 'the mirror does not have'
      throw new TuttiError('data_loss', `Of commit ${commit}, ${where} all objects whole.`, { commit })
    },

    async remove(text, signal) {
      const { mirror, source } = storesOf(parseLocation(text))
      const lock = `${mirror}.lock`
      if (!(await exists(lock))) return
      await withProcessLock(lock, signal, async () => {
        for (const store of [mirror, source]) await rm(store, { recursive: true, force: true })
      })
      await rm(lock, { force: true })
      known.delete(mirror)
    },

    async sweep({ inUse, unusedSince }, signal) {
      const withLock = async (path: string, work: () => Promise<void>) => {
        const patience = AbortSignal.any([signal, AbortSignal.timeout(lockPatienceMs)])
        await withProcessLock(`${path}.lock`, patience, work).catch((error: unknown) => {
          throwIfCancelled(signal)
          if (!(error instanceof TuttiError && error.code === 'cancelled')) throw error
        })
      }
      const isUnused = async (path: string) => {
        const stats = await stat(path).catch(() => undefined)
        if (stats && stats.mtimeMs > unusedSince) return false
        const needed = (await inUse()).flatMap((text) => mirrorPathOf(text) ?? [])
        return !needed.includes(path)
      }
      const removed = await sweepMirrors(root, { withLock, isUnused })
      for (const path of removed) known.delete(path)
      return removed
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
