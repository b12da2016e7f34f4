import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Mirrors } from '@tutti/git'

/** The newest are there to be looked at; nobody would miss older ones. */
const kept = 3

/** Removes all but the newest three repositories of earlier demos in that folder, with their mirrors. */
export async function removeOldRepositories(
  folder: string,
  mirrors: Pick<Mirrors, 'remove'>,
  signal: AbortSignal,
): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.startsWith('little-shop-'))
  const aged = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name)
      return { path, madeAt: (await stat(path)).mtimeMs }
    }),
  )
  for (const { path } of aged.toSorted((one, other) => other.madeAt - one.madeAt).slice(kept)) {
    await mirrors.remove(path, signal)
    await rm(path, { recursive: true, force: true })
  }
}
