import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createInflate } from 'node:zlib'
import { throwIfCancelled } from '@tutti/core'
import type { GitRunner } from './run-git.ts'

const timeoutMs = 30 * 60_000

/**
 * Moves objects and packs that are damaged out of a store. git takes an object that is there by its name for whole, and would not write
 * it again. Reads all of the store. Call it with the lock held.
 */
export async function setAsideDamaged(git: GitRunner, gitDir: string, signal: AbortSignal): Promise<void> {
  const objects = join(gitDir, 'objects')
  const aside = join(gitDir, 'damaged')
  const move = async (folder: string, names: readonly string[]) => {
    await mkdir(aside, { recursive: true })
    for (const name of names) await rename(join(folder, name), join(aside, name))
  }

  const packs = join(objects, 'pack')
  const names = await readdir(packs)
  for (const index of names.filter((name) => name.endsWith('.idx'))) {
    const checked = await git.run(['verify-pack', '--', join(packs, index)], { gitDir, signal, timeoutMs })
    throwIfCancelled(signal)
    if (checked.exitCode === 0) continue
    const stem = index.slice(0, -'idx'.length)
    await move(
      packs,
      names.filter((name) => name.startsWith(stem)),
    )
  }
  const folders = (await readdir(objects)).filter((name) => /^[0-9a-f]{2}$/.test(name))
  for (const start of folders) {
    const folder = join(objects, start)
    for (const rest of await readdir(folder)) {
      throwIfCancelled(signal)
      if (/^[0-9a-f]+$/.test(rest) && !(await isObject(join(folder, rest), start + rest)))
        await move(folder, [rest])
    }
  }
}

/** An object by itself is compressed, and its name is the hash of the rest. */
async function isObject(path: string, id: string): Promise<boolean> {
  const hash = createHash(id.length === 64 ? 'sha256' : 'sha1')
  try {
    await pipeline(createReadStream(path), createInflate(), hash)
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    // Not what zlib has written, or what the disk gives no more.
    if (code.startsWith('Z_') || code === 'EIO') return false
    throw error
  }
  return hash.digest('hex') === id
}
