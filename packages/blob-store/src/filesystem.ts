import { createHash } from 'node:crypto'
import { open, rename, rm, stat, unlink, writeFile, type FileHandle } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { noCrashPoints, isBlobId, throwIfCancelled, type BlobId, type CrashPoint } from '@tutti/core'
import { blobIdOf, blobIdOfHash } from './blob-id.ts'
import { blobPath } from './blob-path.ts'
import { checkRead, damaged, diskFailed, notFound, unreadable } from './blob-errors.ts'
import { createDurableFiles, isThere, namesIn } from './durable-files.ts'
import { createDurableFolders } from './durable-folders.ts'
import { removeLeftovers, temporaryName } from './leftovers.ts'
import type { BlobStore, ByteRange } from './port.ts'
import { inParallel } from './in-parallel.ts'
import { readBlobs } from './read-blobs.ts'
import { canSyncFileSystem, syncFileSystem } from './sync-file-system.ts'

const [firstChunkBytes, chunkBytes] = [16 << 10, 256 << 10]
/** Fewer are faster one by one. */
const minBatch = 16
const putsAtOnce = 16
/** The threads that Node has for files. */
const filesAtOnce = 4
const firstBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/**
 * Blobs as files below `root`, fanned out by the first byte of the hash; unfinished ones are in `root/tmp`, where those of
 * killed processes are removed with the first put. The default store of the embedded mode; several processes may share it.
 */
export function createFilesystemBlobStore({
  root,
  crashPoint = noCrashPoints,
}: {
  root: string
  crashPoint?: CrashPoint
}): BlobStore {
  const base = resolve(root)
  const temporaries = join(base, 'tmp')
  const pathOf = (id: BlobId) => blobPath(base, id)
  const folders = createDurableFolders(base)
  const files = createDurableFiles(temporaries, folders)
  let prepared: Promise<unknown> | undefined
  // All folders at once: later each would cost the blob that needs it first two more writes to the disk.
  const prepare = () =>
    (prepared ??= Promise.all([
      removeLeftovers(temporaries),
      folders.makeAll(base, ['tmp', ...firstBytes]),
    ]).catch(() => {
      // What could not be made now is made when it is needed, and a failure is told then.
    }))

  /** A batch is written to the disk by one request for the whole file system, where the machine has a program for that. */
  async function putBatch(contents: readonly Uint8Array[], signal: AbortSignal): Promise<BlobId[]> {
    await folders.make(temporaries).catch(diskFailed)
    const written = contents.map((bytes) => ({
      bytes,
      temporary: join(temporaries, temporaryName()),
      id: blobIdOf(bytes),
    }))
    try {
      await inParallel(written, filesAtOnce, async ({ temporary, bytes }) => {
        throwIfCancelled(signal)
        await writeFile(temporary, bytes, { flag: 'wx', mode: 0o400 }).catch(diskFailed)
      })
      await syncFileSystem(base)
      return await crashPoint('blob.put', async () => {
        await inParallel(written, filesAtOnce, async ({ temporary, id }) => {
          const path = pathOf(id)
          await folders.make(dirname(path)).catch(diskFailed)
          await rename(temporary, path).catch(diskFailed)
        })
        await syncFileSystem(base)
        return written.map(({ id }) => id)
      })
    } catch (error) {
      for (const { temporary } of written) await unlink(temporary).catch(() => {})
      throw error
    }
  }

  async function* stream(id: BlobId, signal: AbortSignal, range?: ByteRange): AsyncGenerator<Uint8Array> {
    throwIfCancelled(signal)
    checkRead(id, range)
    const file = await openBlob(pathOf(id), id)
    try {
      const hash = range ? undefined : createHash('sha256')
      for await (const chunk of readChunks(file, id, range)) {
        throwIfCancelled(signal)
        hash?.update(chunk)
        yield chunk
      }
      throwIfCancelled(signal)
      if (hash && blobIdOfHash(hash) !== id) throw damaged(id)
    } finally {
      await file.close()
    }
  }

  const store: BlobStore = {
    async put(bytes, signal) {
      throwIfCancelled(signal)
      await prepare()
      const hash = createHash('sha256')
      const temporary = await files.write(bytes, signal, (chunk) => hash.update(chunk))
      const id = blobIdOfHash(hash)
      await crashPoint('blob.put', () => files.publish(temporary, pathOf(id))).catch(diskFailed)
      return id
    },

    async putAll(contents, signal) {
      throwIfCancelled(signal)
      await prepare()
      if (contents.length >= minBatch && (await canSyncFileSystem())) return putBatch(contents, signal)
      return inParallel(contents, putsAtOnce, (bytes) => store.put(bytes, signal))
    },

    stream,

    async get(id, signal, range) {
      const chunks: Uint8Array[] = []
      for await (const chunk of stream(id, signal, range)) chunks.push(chunk)
      return new Uint8Array(Buffer.concat(chunks))
    },

    async getAll(ids, signal) {
      throwIfCancelled(signal)
      for (const id of ids) checkRead(id, undefined)
      if (ids.length < minBatch) return inParallel(ids, filesAtOnce, (id) => store.get(id, signal))
      const contents = await readBlobs({ base, ids })
      throwIfCancelled(signal)
      return contents
    },

    async removeLeftovers(signal) {
      throwIfCancelled(signal)
      await removeLeftovers(temporaries)
    },

    async has(id, signal) {
      throwIfCancelled(signal)
      checkRead(id, undefined)
      return isThere(pathOf(id))
    },

    async *list(signal) {
      for (const folder of firstBytes) {
        for (const id of (await namesIn(join(base, folder))).filter(isBlobId)) {
          throwIfCancelled(signal)
          const found = await stat(pathOf(id)).catch(() => undefined)
          if (found) yield { id, size: found.size, storedAt: found.mtimeMs }
        }
      }
    },

    async remove(id, signal) {
      throwIfCancelled(signal)
      checkRead(id, undefined)
      await rm(pathOf(id), { force: true }).catch(diskFailed)
    },

    async size(id, signal) {
      throwIfCancelled(signal)
      checkRead(id, undefined)
      const found = await stat(pathOf(id)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') throw notFound(id, error)
        return diskFailed(error)
      })
      return found.size
    },
  }
  return store
}

async function openBlob(path: string, id: BlobId): Promise<FileHandle> {
  return open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw notFound(id, error)
    throw unreadable(id, error)
  })
}

async function* readChunks(
  file: FileHandle,
  id: BlobId,
  range: ByteRange | undefined,
): AsyncGenerator<Uint8Array> {
  let position = range?.start ?? 0
  const end = range?.end ?? Number.POSITIVE_INFINITY
  // Most blobs are small: their only read finds their end.
  for (let size = firstChunkBytes; position < end; size = chunkBytes) {
    const wanted = Math.min(size, end - position)
    const { bytesRead, buffer } = await file
      .read(Buffer.allocUnsafeSlow(wanted), 0, wanted, position)
      .catch((error: NodeJS.ErrnoException) => {
        throw unreadable(id, error)
      })
    position += bytesRead
    if (bytesRead > 0) yield new Uint8Array(buffer.buffer, 0, bytesRead)
    if (bytesRead < wanted) return
  }
}
