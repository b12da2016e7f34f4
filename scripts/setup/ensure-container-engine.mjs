import { spawnSync } from 'node:child_process'
import { installDebianPackages } from './debian-packages.mjs'

/** What a private engine of the tests consists of, and the package of each. */
const PARTS = {
  podman: 'podman',
  runc: 'runc',
  conmon: 'conmon',
  busybox: 'busybox-static',
}
/** Networks of containers; it is in no folder of programs. */
const NETWORK = 'netavark'

/** @typedef {{ok: true} | {ok: false, missing: readonly string[], why: string}} EngineTrial */

/** Whether tests can start a container engine of their own here. @returns {EngineTrial} */
export function tryContainerEngine(env = process.env) {
  if (process.platform !== 'linux')
    return { ok: false, missing: [], why: 'the tests of container sandboxes need Linux' }
  if (process.getuid?.() !== 0)
    return { ok: false, missing: [], why: 'the tests of container sandboxes start an engine as root' }
  const missing = Object.entries(PARTS).flatMap(([program, name]) =>
    spawnSync(program, ['--help'], { env, stdio: 'ignore' }).error ? [name] : [],
  )
  if (missing.length === 0) return { ok: true }
  return { ok: false, missing, why: `the tests of container sandboxes need ${missing.join(', ')}` }
}

/**
 * Brings what the tests of container sandboxes need where that is possible.
 *
 * @param {{signal: AbortSignal}} options
 * @returns {Promise<EngineTrial>}
 */
export async function ensureContainerEngine({ signal }) {
  const trial = tryContainerEngine()
  if (trial.ok || trial.missing.length === 0) return trial
  const packages = [...new Set([...trial.missing, NETWORK])]
  await installDebianPackages(packages, 'tests of container sandboxes', { signal })
  return tryContainerEngine()
}
