import { createHash, randomUUID } from 'node:crypto'
import { open, unlink, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { TuttiError, type BlobId } from '@tutti/core'
import { abortableSource, blobIdOfHash } from '@tutti/blob-store/adapter'

/** Bytes whose hash and length are known, and that can be read as often as an upload needs. */
export interface SpooledBlob {
  readonly id: BlobId
  readonly size: number
  /** Whether reading takes memory beyond what the blob holds already. */
  readonly onDisk: boolean
  read(start: number, end: number): Promise<Uint8Array>
  close(): Promise<void>
}

export interface SpoolOptions {
  readonly folder: string
  /** A stream keeps so much in memory and then goes to a file. */
  readonly memoryBytes: number
}

/**
 * Takes the bytes of a put. A file has no name any more when the first byte is in it, so that nothing stays when this process dies.
 *
 * @throws TuttiError `cancelled`; `unavailable` when the temporary folder fails; whatever the source throws.
 */
export async function spool(
  bytes: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  { folder, memoryBytes }: SpoolOptions,
): Promise<SpooledBlob> {
  const hash = createHash('sha256')
  const held: Uint8Array[] = []
  let size = 0
  let file: FileHandle | undefined
  try {
    for await (const chunk of abortableSource(bytes, signal)) {
      hash.update(chunk)
      size += chunk.length
      if (!file && (bytes instanceof Uint8Array || size <= memoryBytes)) {
        // A source may use its buffer again.
        held.push(bytes instanceof Uint8Array ? chunk : chunk.slice())
        continue
      }
      file ??= await openNameless(folder)
      for (const piece of held.splice(0)) await file.writeFile(piece).catch(refuse)
      await file.writeFile(chunk).catch(refuse)
    }
  } catch (error) {
    await file?.close()
    throw error
  }
  const id = blobIdOfHash(hash)
  const known = { id, size, onDisk: file !== undefined, close: async () => file?.close() }
  if (file) return { ...known, read: (start, end) => readFully(file, start, Math.min(end, size)) }
  const whole = held.length === 1 ? held[0]! : Buffer.concat(held)
  return { ...known, read: async (start, end) => whole.subarray(start, end) }
}

async function openNameless(folder: string): Promise<FileHandle> {
  const path = join(folder, `tutti-upload-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600).catch(refuse)
  await unlink(path)
  return file
}

async function readFully(file: FileHandle, start: number, end: number): Promise<Uint8Array> {
  const buffer = new Uint8Array(end - start)
  for (let done = 0; done < buffer.length;) {
    const { bytesRead } = await file.read(buffer, done, buffer.length - done, start + done).catch(refuse)
    if (bytesRead === 0)
      throw new TuttiError('internal', 'A temporary file became shorter while it was read.')
    done += bytesRead
  }
  return buffer
}

function refuse(cause: NodeJS.ErrnoException): never {
  throw new TuttiError(
    'unavailable',
    `The folder for temporary files failed with ${cause.code ?? cause.name}; make room in it, or set TMPDIR to another one, then try again.`,
    { reason: 'temporary_folder' },
    cause,
  )
}
