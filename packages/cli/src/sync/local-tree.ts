import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { foldersOf, type BlobId } from '@tutti/core'
import {
  isRacy,
  pathBytes,
  readStableFile,
  readStableLink,
  sameStat,
  scanTree,
  statTuple,
  type StatTuple,
} from '@tutti/workspace'
import { createIgnoredByRules, type IgnoredByRules } from './ignored-by-rules.ts'
import { createNamesakes } from './namesakes.ts'
import type { PathState } from './path-state.ts'
import { readChunks } from './read-chunks.ts'
import { stateFolder } from './sync-state.ts'

/** What a look found at a path. */
export interface LocalPath {
  readonly state: PathState
  /** Of what is there; undefined when nothing is. To see whether it is still the same right before it is replaced. */
  readonly stat: StatTuple | undefined
  /** Something that is no file, link or folder, or cannot be read: not known, so neither sent nor replaced. */
  readonly unknown?: true
  /** On a disk that ignores case: what it has in the place of this path, which is not there. */
  readonly namesake?: string
}

export interface LocalTree {
  /** Every path that there is: a whole walk. */
  scan(isKnown: (key: string) => boolean, signal: AbortSignal): Promise<LocalScan>
  /** The folders that the last whole walk entered. */
  folders(): readonly string[]
  /** One path, now. */
  look(key: string): Promise<LocalPath>
  path(key: string): Buffer
  /** What the rule files match that are in the folder now. */
  rules(): IgnoredByRules
  /**
   * The first parent of the path that is no folder, such as a link to one: what is behind it is not in the folder, whatever the path leads
   * to. Undefined when there is none.
   */
  blockedBy(key: string): string | undefined
}

export interface LocalScan {
  readonly paths: ReadonlyMap<string, LocalPath>
  /** Whether nothing can be said of a path: it was not entered, or could not be read. */
  readonly isUnknown: (key: string) => boolean
  /** Whether one of the paths is in this folder. */
  readonly holds: (folder: string) => boolean
}

/** Up to here a file is read in one go. */
const wholeBytes = 4n << 20n
const absent: LocalPath = { state: undefined, stat: undefined }

/**
 * The user's folder as it is. Contents that have not changed since are not read again.
 *
 * @param ignoresCase the folder's disk finds a path also under names that differ in case
 */
export function createLocalTree(folder: string, ignoresCase = false): LocalTree {
  const cache = new Map<string, { stat: StatTuple; readAtNs: bigint; state: PathState }>()
  const path = (key: string) => Buffer.concat([Buffer.from(`${folder}/`), pathBytes(key)])

  const namesakeOf = ignoresCase ? createNamesakes(path) : () => undefined

  function blockedBy(key: string): string | undefined {
    for (const parent of foldersOf(key)) {
      const stats = lstatSync(path(parent), { throwIfNoEntry: false })
      if (!stats) return undefined
      if (!stats.isDirectory()) return parent
    }
    return undefined
  }

  async function stateOf(key: string, stat: StatTuple, type: 'file' | 'symlink'): Promise<LocalPath> {
    const cached = cache.get(key)
    if (cached && sameStat(cached.stat, stat) && !isRacy(cached.stat, cached.readAtNs))
      return { state: cached.state, stat }
    // A walk is over when its files are read.
    if (blockedBy(key) !== undefined) return absent
    const readAtNs = BigInt(Date.now()) * 1_000_000n
    const isLarge = type === 'file' && stat.size > wholeBytes
    const small = isLarge
      ? undefined
      : type === 'file'
        ? readStableFile(path(key))
        : readStableLink(path(key))
    const hash: BlobId = small ? hashOfBytes(small.bytes) : await hashOfFile(path(key))
    const after = small?.stat ?? statTuple(lstatSync(path(key), { bigint: true }))
    const settled = small ? small.settled : sameStat(stat, after)
    const mode = type === 'symlink' ? '120000' : (after.mode & 0o100n) === 0n ? '100644' : '100755'
    const state: PathState = { mode, hash }
    if (!settled) return { state, stat: after, unknown: true }
    cache.set(key, { stat: after, readAtNs, state })
    return { state, stat: after }
  }

  async function known(key: string, stat: StatTuple, type: 'file' | 'symlink'): Promise<LocalPath> {
    try {
      return await stateOf(key, stat, type)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === undefined) throw error
      // Gone or swapped meanwhile, or not to be read: that of one path, and the next look knows.
      return { state: undefined, stat, unknown: true }
    }
  }

  function readRules(key: string): string {
    // As git does; and a fifo would be waited for.
    if (!lstatSync(path(key)).isFile()) throw new Error(`${key} is no file.`)
    return readFileSync(path(key), 'utf8')
  }
  const rules = () => createIgnoredByRules(readRules, ignoresCase)
  let folders: readonly string[] = []
  return {
    path,
    rules,
    blockedBy,
    folders: () => folders,
    async scan(isKnown, signal) {
      // Gone with its disk or moved: nothing that is not there any more was deleted.
      lstatSync(join(folder, stateFolder))
      const ignored = rules()
      const isOwn = (key: string) => key === stateFolder
      const tree = await scanTree(folder, {
        prune: (key) => isOwn(key) || ignored.prunes(key, isKnown),
        signal,
      })
      folders = tree.folders
      const paths = new Map<string, LocalPath>()
      const holders = new Set<string>()
      for (const key of [
        ...tree.files.keys(),
        ...tree.folders,
        ...tree.special,
        ...tree.unreadable,
        ...tree.pruned,
      ])
        holders.add(key.slice(0, Math.max(0, key.lastIndexOf('/'))))
      for (const [key, { stat, type }] of tree.files) {
        signal.throwIfAborted()
        if (!isKnown(key) && ignored.matches(key)) continue
        paths.set(key, await known(key, stat, type))
      }
      for (const key of tree.folders)
        if (!holders.has(key)) paths.set(key, { state: { mode: '040000' }, stat: undefined })
      for (const key of [...tree.special, ...tree.unsafe, ...tree.unreadable])
        if (isKnown(key) || !ignored.matches(key))
          paths.set(key, { state: undefined, stat: undefined, unknown: true })
      const shut = [...tree.unreadable, ...tree.pruned.filter((key) => !isOwn(key))]
      let holding: ReadonlySet<string> | undefined
      return {
        paths,
        isUnknown: (key) => shut.some((at) => key === at || key.startsWith(`${at}/`)),
        holds: (folder) =>
          (holding ??= new Set([...paths.keys()].flatMap((key) => [...foldersOf(key)]))).has(folder),
      }
    },

    async look(key) {
      try {
        if (blockedBy(key) !== undefined) return absent
        const namesake = namesakeOf(key)
        if (namesake !== undefined) return { ...absent, namesake }
        const stats = lstatSync(path(key), { bigint: true })
        if (stats.isDirectory())
          return readdirSync(path(key)).length === 0
            ? { state: { mode: '040000' }, stat: statTuple(stats) }
            : { state: undefined, stat: statTuple(stats) }
        if (stats.isFile()) return await known(key, statTuple(stats), 'file')
        if (stats.isSymbolicLink()) return await known(key, statTuple(stats), 'symlink')
        return { state: undefined, stat: statTuple(stats), unknown: true }
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException
        if (code === 'ENOENT' || code === 'ENOTDIR') return absent
        return { ...absent, unknown: true }
      }
    },
  }
}

const hashOfBytes = (bytes: Uint8Array): BlobId =>
  `sha256_${createHash('sha256').update(bytes).digest('hex')}`

async function hashOfFile(path: Buffer): Promise<BlobId> {
  const digest = createHash('sha256')
  for await (const chunk of readChunks(path)) digest.update(chunk)
  return `sha256_${digest.digest('hex')}`
}
