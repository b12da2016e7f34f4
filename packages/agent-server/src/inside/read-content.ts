import { createHash, randomUUID } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { open, rm, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BlobId } from '@tutti/core'
import {
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
  bytes(): AsyncIterable<Uint8Array>
  dispose(): Promise<void>
}

/** Up to here a file is read whole; above it is copied aside, so that its hash can be known before it is sent. */
const wholeBytes = 4n << 20n

/** @throws the file system's error when it is gone, unreadable or no longer what the scan saw. */
export async function readContent(
  path: Buffer,
  scanned: ScannedFile,
  ignored: boolean,
): Promise<ReadContent> {
  const readAtNs = nowNs()
  if (scanned.type === 'symlink' || scanned.stat.size <= wholeBytes) {
    const content = scanned.type === 'symlink' ? readStableLink(path) : readStableFile(path)
    const { bytes } = content
    const hash: BlobId = `sha256_${createHash('sha256').update(bytes).digest('hex')}`
    return {
      known: {
        ...knownFile(scanned.type, content.stat, bytes.length, hash, content.settled ? readAtNs : 0n),
        ignored,
      },
      async *bytes() {
        for (let start = 0; start < bytes.length; start += chunkBytes)
          yield bytes.subarray(start, start + chunkBytes)
      },
      async dispose() {},
    }
  }
  return copyAside(path, readAtNs, ignored)
}

const chunkBytes = 64 << 10

async function copyAside(path: Buffer, readAtNs: bigint, ignored: boolean): Promise<ReadContent> {
  const copy = join(tmpdir(), `.tutti-${randomUUID()}`)
  const remove = () => rm(copy, { force: true })
  const source = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const opened = await source.stat({ bigint: true })
    if (!opened.isFile()) throw Object.assign(new Error('not a regular file'), { code: 'EINVAL' })
    const before = statTuple(opened)
    const target = await open(copy, 'wx', 0o600)
    const { size, hash } = await copyHashed(source, target).finally(() => target.close())
    const stats = await source.stat({ bigint: true })
    const after = statTuple(stats)
    return {
      known: { ...knownFile('file', after, size, hash, sameStat(before, after) ? readAtNs : 0n), ignored },
      bytes: () => createReadStream(copy, { highWaterMark: chunkBytes }),
      dispose: remove,
    }
  } catch (error) {
    await remove()
    throw error
  } finally {
    await source.close()
  }
}

async function copyHashed(source: FileHandle, target: FileHandle): Promise<{ size: number; hash: BlobId }> {
  const digest = createHash('sha256')
  const buffer = Buffer.allocUnsafe(1 << 20)
  let size = 0
  for (;;) {
    const { bytesRead } = await source.read(buffer, 0, buffer.length, size)
    if (bytesRead === 0) return { size, hash: `sha256_${digest.digest('hex')}` }
    const chunk = buffer.subarray(0, bytesRead)
    digest.update(chunk)
    await target.writeFile(chunk)
    size += bytesRead
  }
}

const knownFile = (
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
