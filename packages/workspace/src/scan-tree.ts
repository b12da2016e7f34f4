import { lstatSync, readdirSync, type BigIntStats } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { isGitName } from '@tutti/core'
import { pathBytes, pathKey } from './path-key.ts'
import { statTuple, type StatTuple } from './stat-tuple.ts'

export interface ScannedFile {
  readonly type: 'file' | 'symlink'
  readonly stat: StatTuple
}

/** What a walk found. Keys are path keys below the root. */
export interface ScannedTree {
  readonly files: ReadonlyMap<string, ScannedFile>
  readonly folders: readonly string[]
  /** Folders that were not entered. */
  readonly pruned: readonly string[]
  /** Fifos, sockets, devices. */
  readonly special: readonly string[]
  /** Names that are never captured, with what is below them not looked at. */
  readonly unsafe: readonly string[]
  /** Every `.git` but that of the root itself, whatever it is; not looked into. */
  readonly repositories: readonly string[]
  /** Folders or files that could not be looked at: what was known below them is unknown now, not deleted. */
  readonly unreadable: readonly string[]
}

export interface ScanOptions {
  /** Folders (path keys) that are not entered. */
  readonly prune?: (key: string) => boolean
  readonly signal?: AbortSignal
}

/** Longest time that one walk keeps other work of its process waiting, in milliseconds. */
const sliceMs = 10

/**
 * Walks a whole workspace with synchronous calls (four times as fast as asynchronous ones), giving way to other work between folders.
 * Follows no link, never enters `.git` at any depth.
 *
 * @throws the file system's error when the root itself cannot be read: an unreadable root is not an empty one.
 */
export async function scanTree(root: string, options: ScanOptions = {}): Promise<ScannedTree> {
  const files = new Map<string, ScannedFile>()
  const folders: string[] = []
  const pruned: string[] = []
  const special: string[] = []
  const unsafe: string[] = []
  const repositories: string[] = []
  const unreadable: string[] = []
  const rootKey = pathKey(Buffer.from(`${root}/`))
  const waiting = ['']
  let sliceStart = performance.now()

  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    options.signal?.throwIfAborted()
    let names: string[]
    try {
      names = readdirSync(pathBytes(rootKey + folder), { encoding: 'latin1' })
    } catch (error) {
      if (folder === '') throw error
      if (!isGone(error)) unreadable.push(folder)
      continue
    }
    for (const name of names) {
      const key = folder === '' ? name : `${folder}/${name}`
      if (mayBeGitName.test(name) && isGitName(pathBytes(name))) {
        if (name !== '.git') unsafe.push(key)
        else if (folder !== '') repositories.push(key)
        continue
      }
      const stats = statOf(pathBytes(rootKey + key))
      if (stats === 'gone') continue
      if (stats === 'unreadable') {
        unreadable.push(key)
        continue
      }
      const file = scannedFile(stats)
      if (file) files.set(key, file)
      else if (!stats.isDirectory()) special.push(key)
      else if (options.prune?.(key)) pruned.push(key)
      else {
        folders.push(key)
        waiting.push(key)
      }
    }
    if (performance.now() - sliceStart > sliceMs) {
      await setImmediate()
      sliceStart = performance.now()
    }
  }
  return { files, folders, pruned, special, unsafe, repositories, unreadable }
}

/** Of path keys: a look at every byte of every name would take as long as the rest of a walk. */
const mayBeGitName = /git|[^\x00-\x7f]/i

/** The file or link at a path key below the root; undefined for anything else. */
export function scanFile(root: string, key: string): ScannedFile | undefined {
  const stats = statOf(below(root, key))
  return typeof stats === 'string' ? undefined : scannedFile(stats)
}

/** Whether a path key is a folder, itself and not by a link. */
export function isFolder(root: string, key: string): boolean {
  const stats = statOf(below(root, key))
  return typeof stats !== 'string' && stats.isDirectory()
}

/** As {@link isFolder}, with nothing in it that can be seen. */
export function holdsNothing(root: string, key: string): boolean {
  try {
    return isFolder(root, key) && readdirSync(below(root, key)).length === 0
  } catch {
    return false
  }
}

const below = (root: string, key: string): Buffer => Buffer.concat([Buffer.from(`${root}/`), pathBytes(key)])

function scannedFile(stats: BigIntStats): ScannedFile | undefined {
  if (stats.isFile()) return { type: 'file', stat: statTuple(stats) }
  return stats.isSymbolicLink() ? { type: 'symlink', stat: statTuple(stats) } : undefined
}

function statOf(path: Buffer): BigIntStats | 'gone' | 'unreadable' {
  try {
    return lstatSync(path, { bigint: true })
  } catch (error) {
    return isGone(error) ? 'gone' : 'unreadable'
  }
}

/** Removed between the listing and the look: the next scan has the whole truth, this one simply does not have the file. */
const isGone = (error: unknown): boolean => {
  const code = (error as NodeJS.ErrnoException).code
  return code === 'ENOENT' || code === 'ENOTDIR'
}
