import { open, readdir, rename, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { throwIfCancelled } from '@tutti/core'
import { abortableSource } from './abortable-source.ts'
import { diskFailed } from './blob-errors.ts'
import type { DurableFolders } from './durable-folders.ts'
import { temporaryName } from './leftovers.ts'

/** Files that appear under their name whole and on the disk, or not at all. */
export interface DurableFiles {
  /** Writes the bytes into a temporary file, whose path is returned; it is on the disk then. Nothing stays when it fails. */
  write(
    bytes: Uint8Array | AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    onChunk?: (chunk: Uint8Array) => void,
  ): Promise<string>
  /** Gives the finished file its name. It replaces what is there. */
  publish(temporary: string, path: string): Promise<void>
}

export function createDurableFiles(temporaries: string, folders: DurableFolders): DurableFiles {
  return {
    async write(bytes, signal, onChunk) {
      await folders.make(temporaries).catch(diskFailed)
      const temporary = join(temporaries, temporaryName())
      try {
        const file = await open(temporary, 'wx', 0o400).catch(diskFailed)
        try {
          for await (const chunk of abortableSource(bytes, signal)) {
            onChunk?.(chunk)
            await file.writeFile(chunk).catch(diskFailed)
          }
          await file.sync().catch(diskFailed)
        } finally {
          await file.close()
        }
        throwIfCancelled(signal)
        return temporary
      } catch (error) {
        await unlink(temporary).catch(() => {})
        throw error
      }
    },

    async publish(temporary, path) {
      try {
        await folders.make(dirname(path))
        await rename(temporary, path)
        await folders.sync(dirname(path))
      } catch (error) {
        // Not there any more when only the last step failed.
        await unlink(temporary).catch(() => {})
        diskFailed(error as NodeJS.ErrnoException)
      }
    },
  }
}

export const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT' && diskFailed(error),
  )

/** Empty for a folder that is not there. */
export const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? [] : diskFailed(error)))
