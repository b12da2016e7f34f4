import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import type { BlobId } from '@tutti/core'
import {
  fileTooLarge,
  readStableFile,
  readStableLink,
  sameStat,
  statTuple,
  type ScannedFile,
  type StatTuple,
} from '@tutti/workspace'
import { nowNs, type KnownFile } from './workspace-state.ts'

/** Content as it was read once: what is sent is exactly what was hashed, whatever happens to the file meanwhile. */
export interface ReadContent {
  readonly known: KnownFile
  /** Absent for a large file: whoever wanted its content has taken it while it was read. */
  readonly bytes?: Uint8Array
}

/** Takes the content of a large file while it is read, which is before its hash and its size are known. */
export type TakeContent = (content: AsyncIterable<Uint8Array>) => Promise<void>

/** Up to here a file is read whole; above it goes to who takes it as it is read, since neither memory nor the disk need have room for it. */
const wholeBytes = 4n << 20n

/**
 * @throws the file system's error when it is gone, unreadable or no longer what the scan saw, `EFBIG` when it has grown above `maxBytes` since;
 *   what `take` throws.
 */
export async function readContent(
  path: Buffer,
  scanned: ScannedFile,
  ignored: boolean,
  take: TakeContent = readOn,
  maxBytes = Infinity,
): Promise<ReadContent> {
  const readAtNs = nowNs()
  if (scanned.type === 'file' && scanned.stat.size > wholeBytes)
    return { known: { ...(await readPassing(path, readAtNs, take, maxBytes)), ignored } }
  const content = scanned.type === 'symlink' ? readStableLink(path) : readStableFile(path, maxBytes)
  const { bytes } = content
  const hash: BlobId = `sha256_${createHash('sha256').update(bytes).digest('hex')}`
  const known = knownFile(scanned.type, content.stat, bytes.length, hash, content.settled ? readAtNs : 0n)
  return { known: { ...known, ignored }, bytes }
}

async function readOn(content: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of content) void _
}

async function readPassing(path: Buffer, readAtNs: bigint, take: TakeContent, maxBytes: number) {
  const source = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const opened = await source.stat({ bigint: true })
    if (!opened.isFile()) throw Object.assign(new Error('not a regular file'), { code: 'EINVAL' })
    if (opened.size > maxBytes) throw fileTooLarge()
    const before = statTuple(opened)
    const digest = createHash('sha256')
    let size = 0
    const hashed = async function* () {
      for await (const chunk of chunksOf(source, Number(opened.size))) {
        digest.update(chunk)
        size += chunk.length
        yield chunk
      }
    }
    await take(hashed())
    const after = statTuple(await source.stat({ bigint: true }))
    const hash: BlobId = `sha256_${digest.digest('hex')}`
    return knownFile('file', after, size, hash, sameStat(before, after) ? readAtNs : 0n)
  } finally {
    await source.close()
  }
}

const chunkBytes = 256 << 10

/** At most `size` bytes: one that grows all the time would have no end. */
async function* chunksOf(source: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size;) {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, size - at))
    const { bytesRead } = await source.read(buffer, 0, buffer.length, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

export const knownFile = (
  fileType: 'file' | 'symlink',
  stat: StatTuple,
  size: number,
  hash: BlobId,
  readAtNs: bigint,
): Omit<KnownFile, 'ignored'> => ({
  fileType,
  mode: fileType === 'symlink' ? '120000' : (stat.mode & 0o100n) !== 0n ? '100755' : '100644',
  size,
  hash,
  stat,
  readAtNs,
})
