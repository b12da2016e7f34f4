import { mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Moves the packs of a folder of objects into a store. A pack is there as soon as its index is.
 *
 * @returns the names of their files
 */
export async function letIn(objects: string, gitDir: string): Promise<readonly string[]> {
  const from = join(objects, 'pack')
  const to = join(gitDir, 'objects', 'pack')
  await mkdir(to, { recursive: true })
  const names = await readdir(from)
  for (const name of names.toSorted(
    (one, other) => Number(one.endsWith('.idx')) - Number(other.endsWith('.idx')),
  ))
    await rename(join(from, name), join(to, name))
  return names
}
