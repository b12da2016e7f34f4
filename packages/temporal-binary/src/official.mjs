import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { run } from './run.mjs'

/** @typedef {import('./artifacts.mjs').Artifact} Artifact */

const SERVICE = 'https://temporal.download'
const PATIENCE_MS = 10_000
/** Below this a download counts as standing still. */
const LEAST_BYTES_PER_WINDOW = 640 * 1024

/**
 * Fetches the program from Temporal's download service, the one that the SDKs use. Gives up when ten seconds pass
 * without an answer, or bring less than 640 KiB: a blocked network must not hold a first run, a slow one may take its
 * time.
 *
 * @param {Artifact} artifact
 * @param {string} folder
 * @param {{env: Record<string, string | undefined>, log: (line: string) => void, signal?: AbortSignal | undefined}} options
 *   `TUTTI_TEMPORAL_DOWNLOAD_URL` in `env` replaces the service by a mirror with the same answers.
 * @returns {Promise<string>} path of the program
 */
export async function downloadOfficial(artifact, folder, { env, log, signal }) {
  const patience = createPatience(signal)
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  const service = env['TUTTI_TEMPORAL_DOWNLOAD_URL'] || SERVICE
  const archivePath = join(folder, 'archive.tar.gz')
  /** @type {unknown} */
  let wanted
  try {
    const question = `${service}/${artifact.officialName}/v${artifact.version}?arch=${arch}&platform=${process.platform}&format=tar.gz`
    /** @type {any} */
    const info = await answered(await fetch(question, { signal: patience.signal })).json()
    wanted = info.fileToExtract
    const response = answered(await fetch(info.archiveUrl, { signal: patience.signal }))
    if (!response.body) throw new Error('the answer was empty')
    const total = Number(response.headers.get('content-length'))
    log(`Downloading ${artifact.title} ${artifact.version}${total ? ` (${megabytes(total)} MB)` : ''} …`)
    const body = Readable.fromWeb(response.body)
    body.on('data', (chunk) => patience.received(chunk.length))
    await pipeline(body, createWriteStream(archivePath), { signal: patience.signal })
  } catch (error) {
    signal?.throwIfAborted()
    throw patience.signal.aborted ? patience.signal.reason : error
  } finally {
    patience.end()
  }
  if (typeof wanted !== 'string' || wanted === '' || wanted.startsWith('-'))
    throw new Error('the answer names no file')
  const unpacked = await run('tar', ['-xzf', archivePath, '-C', folder, wanted], { signal, env })
  if (unpacked.code !== 0) throw new Error(`cannot unpack the archive: ${unpacked.output}`)
  return join(folder, wanted)
}

/** @param {Response} response */
function answered(response) {
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}`)
  return response
}

/** @param {AbortSignal | undefined} outer */
function createPatience(outer) {
  const stop = new AbortController()
  let bytes = 0
  let bytesBefore = 0
  const timer = setInterval(() => {
    if (bytes - bytesBefore < LEAST_BYTES_PER_WINDOW)
      stop.abort(new Error(`no answer within ${PATIENCE_MS / 1000} s`))
    bytesBefore = bytes
  }, PATIENCE_MS)
  return {
    signal: outer ? AbortSignal.any([outer, stop.signal]) : stop.signal,
    /** @param {number} count */
    received(count) {
      bytes += count
    },
    end: () => clearInterval(timer),
  }
}

/** @param {number} bytes */
function megabytes(bytes) {
  return Math.round(bytes / 1e6)
}
