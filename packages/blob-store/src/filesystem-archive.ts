import { createReadStream } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { throwIfCancelled } from '@tutti/core'
import type { Archive } from './archive.ts'
import { archiveDamaged, archiveNotFound, checkName, diskFailed } from './blob-errors.ts'
import { createDurableFiles, isThere, namesIn } from './durable-files.ts'
import { createDurableFolders } from './durable-folders.ts'
import { removeLeftovers } from './leftovers.ts'

/** The archive as files below `root`, each at the path that its name is; unfinished ones are in `root/tmp`. Several processes may share it. */
export function createFilesystemArchive({ root }: { root: string }): Archive {
  const base = resolve(root)
  const temporaries = join(base, 'tmp')
  const files = createDurableFiles(temporaries, createDurableFolders(base))
  let prepared: Promise<void> | undefined
  const pathOf = (name: string, signal: AbortSignal) => {
    throwIfCancelled(signal)
    checkName(name)
    return join(base, name)
  }
  return {
    async put(name, bytes, signal) {
      const path = pathOf(name, signal)
      await (prepared ??= removeLeftovers(temporaries))
      await files.publish(await files.write(bytes, signal), path)
    },

    has: async (name, signal) => isThere(pathOf(name, signal)),

    async *stream(name, signal) {
      try {
        for await (const chunk of createReadStream(pathOf(name, signal), { signal })) yield chunk as Buffer
      } catch (error) {
        throwIfCancelled(signal)
        const { code } = error as NodeJS.ErrnoException
        if (code === 'ENOENT') throw archiveNotFound(name, error)
        // Its sectors have gone: whoever can do without it must not wait for it.
        if (code === 'EIO') throw archiveDamaged(name, error)
        diskFailed(error as NodeJS.ErrnoException)
      }
    },

    async *list(prefix, signal) {
      const folder = dirname(`${prefix}x`)
      for (const name of (await namesIn(pathOf(folder, signal))).toSorted()) {
        throwIfCancelled(signal)
        if (`${folder}/${name}`.startsWith(prefix)) yield `${folder}/${name}`
      }
    },
  }
}
