import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/** @typedef {import('./artifacts.mjs').Artifact} Artifact */
/** @typedef {{version: string, file: string, sha256: string, source: string}} Manifest */

const ABANDONED_MS = 3_600_000

/**
 * Tutti's folder below the user's cache folder.
 *
 * @param {Record<string, string | undefined>} env
 * @param {NodeJS.Platform} [platform]
 */
export function cacheFolder(env, platform = process.platform) {
  const home = env['HOME'] || homedir()
  const xdg = env['XDG_CACHE_HOME']
  if (xdg && isAbsolute(xdg)) return join(xdg, 'tutti')
  return platform === 'darwin' ? join(home, 'Library', 'Caches', 'tutti') : join(home, '.cache', 'tutti')
}

/** @param {Artifact} artifact @param {Record<string, string | undefined>} env */
export function artifactFolder(artifact, env) {
  return join(
    cacheFolder(env),
    'temporal',
    `${artifact.name}-${artifact.version}-${process.platform}-${process.arch}`,
  )
}

/**
 * The cached program, if its bytes are still those that were installed.
 *
 * @param {Artifact} artifact
 * @param {Record<string, string | undefined>} env
 * @param {AbortSignal} [signal]
 * @returns {Promise<{path: string} | {why: string}>}
 */
export async function readCached(artifact, env, signal) {
  const folder = artifactFolder(artifact, env)
  /** @type {Manifest} */
  let manifest
  try {
    manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'))
  } catch (error) {
    const absent = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    return { why: absent ? `no copy in ${folder}` : `unreadable manifest in ${folder}` }
  }
  const path = join(folder, String(manifest.file))
  try {
    if ((await sha256(path, signal)) !== manifest.sha256)
      return { why: `${path} does not match its checksum` }
  } catch (error) {
    signal?.throwIfAborted()
    return { why: `${path}: ${error instanceof Error ? error.message : 'cannot be read'}` }
  }
  return { path }
}

/**
 * Lets `produce` fetch the program into a private folder and puts it into the cache. Appears complete or not at all;
 * the file is named after its content, so that of two installs at once either may win and both paths stay good.
 *
 * @param {Artifact} artifact
 * @param {Record<string, string | undefined>} env
 * @param {string} source
 * @param {(folder: string) => Promise<string>} produce gives the path of the program below `folder`
 * @param {AbortSignal} [signal]
 * @returns {Promise<{path: string}>}
 */
export async function installIntoCache(artifact, env, source, produce, signal) {
  const folder = artifactFolder(artifact, env)
  await mkdir(folder, { recursive: true })
  await removeAbandoned(folder)
  const private_ = join(folder, `.tmp-${randomUUID()}`)
  await mkdir(private_)
  try {
    const produced = await produce(private_)
    await chmod(produced, 0o755)
    await sync(produced)
    const hash = await sha256(produced, signal)
    const file = `${artifact.name}-${hash.slice(0, 16)}`
    /** @type {Manifest} */
    const manifest = { version: artifact.version, file, sha256: hash, source }
    const manifestPath = join(private_, 'manifest.json')
    await writeFile(manifestPath, `${JSON.stringify(manifest, null, 2)}\n`)
    await sync(manifestPath)
    await rename(produced, join(folder, file))
    await rename(manifestPath, join(folder, 'manifest.json'))
    return { path: join(folder, file) }
  } finally {
    await rm(private_, { recursive: true, force: true })
  }
}

/** Left by installs that were killed. Young ones may belong to an install that is running now. @param {string} folder */
async function removeAbandoned(folder) {
  for (const name of await readdir(folder)) {
    if (!name.startsWith('.tmp-')) continue
    const made = await stat(join(folder, name)).catch(() => undefined)
    if (made && Date.now() - made.mtimeMs > ABANDONED_MS)
      await rm(join(folder, name), { recursive: true, force: true })
  }
}

/** @param {string} path @param {AbortSignal} [signal] */
async function sha256(path, signal) {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, ...(signal && { signal }) }))
    hash.update(chunk)
  return hash.digest('hex')
}

/** @param {string} path */
async function sync(path) {
  const file = await open(path, 'r')
  await file.sync().finally(() => file.close())
}
