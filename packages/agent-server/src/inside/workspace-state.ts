import type { BlobId } from '@tutti/core'
import { manifestDigestByKey, type FileState, type StatTuple } from '@tutti/workspace'

/** What is known of one captured file. */
export interface KnownFile {
  readonly fileType: 'file' | 'symlink'
  readonly mode: FileState['mode']
  readonly size: number
  readonly hash: BlobId
  /** git ignores it. */
  readonly ignored: boolean
  readonly stat: StatTuple
  /** When it was read, in nanoseconds since the epoch; for the racy rule. 0 means: read again in any case. */
  readonly readAtNs: bigint
}

export const knownFolder = { fileType: 'dir', mode: '040000' } as const

export type KnownPath = KnownFile | typeof knownFolder

/** By path key. What the last capture that reached the host reported: files, links and empty folders. */
export type KnownPaths = ReadonlyMap<string, KnownPath>

export interface WorkspaceSummary {
  readonly manifestDigest: string
  readonly entries: number
  readonly changes: number
}

/** @param instead what these paths are to the host, where that is something else; undefined: nothing */
export function summarize(
  known: KnownPaths,
  instead: ReadonlyMap<string, KnownPath | undefined>,
  changes: number,
): WorkspaceSummary {
  const logged = new Map(known)
  for (const [key, entry] of instead) {
    if (entry) logged.set(key, entry)
    else logged.delete(key)
  }
  return { manifestDigest: manifestDigestByKey(logged), entries: logged.size, changes }
}

export const stateOf = (path: Uint8Array, known: KnownFile): FileState => ({
  path,
  fileType: known.fileType,
  mode: known.mode,
  size: known.size,
  hash: known.hash,
  ...(known.ignored && { ignored: true }),
})

export const nowNs = (): bigint => BigInt(Date.now()) * 1_000_000n
