import type { BlobId } from '@tutti/core'
import { manifestDigest, pathBytes, type FileState, type StatTuple } from '@tutti/workspace'

/** What is known of one captured file. */
export interface KnownFile {
  readonly fileType: 'file' | 'symlink'
  readonly mode: FileState['mode']
  readonly size: number
  readonly hash: BlobId
  readonly stat: StatTuple
  /** When it was read, in nanoseconds since the epoch; for the racy rule. 0 means: read again in any case. */
  readonly readAtNs: bigint
}

/** By path key. What the last capture that reached the host reported. */
export type KnownFiles = ReadonlyMap<string, KnownFile>

export interface WorkspaceSummary {
  readonly manifestDigest: string
  readonly entries: number
  readonly changes: number
}

export const summarize = (files: KnownFiles, changes: number): WorkspaceSummary => ({
  manifestDigest: manifestDigest(states(files)),
  entries: files.size,
  changes,
})

function* states(files: KnownFiles): Generator<FileState> {
  for (const [key, { fileType, mode, size, hash }] of files) {
    yield { path: pathBytes(key), fileType, mode, size, hash }
  }
}

export const nowNs = (): bigint => BigInt(Date.now()) * 1_000_000n
