import { readdir, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'

/** Of other versions of the sources, which nobody has used for this long. A worker in use says so at every sweep. */
const unusedMs = 7 * 24 * 60 * 60_000

/**
 * Removes bundles of other versions from the cache folder, and what a killed bundler left of one. Checkouts have a folder each, and the
 * workers of one share it.
 *
 * @param inUse paths, of files or of what is in a bundle's folder
 */
export async function removeOldBundles(cacheDir: string, inUse: readonly string[]): Promise<void> {
  const now = new Date()
  const bundles = [
    ...(await namesIn(cacheDir)).filter((name) => name.startsWith('workflows-')),
    ...(await namesIn(join(cacheDir, 'agent-server'))).map((name) => join('agent-server', name)),
  ].map((name) => join(cacheDir, name))
  for (const path of bundles) {
    if (inUse.some((used) => used === path || used.startsWith(`${path}/`))) await utimes(path, now, now)
    else {
      const stats = await stat(path).catch(() => undefined)
      if (stats && now.getTime() - stats.mtimeMs > unusedMs) await rm(path, { recursive: true, force: true })
    }
  }
}

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => [])
