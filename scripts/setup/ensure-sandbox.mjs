import { spawnSync } from 'node:child_process'
import { installDebianPackages } from './debian-packages.mjs'
import { say } from './say.mjs'

const TRIAL = [
  '--unshare-all',
  '--die-with-parent',
  '--ro-bind',
  '/',
  '/',
  '--proc',
  '/proc',
  '--dev',
  '/dev',
  '/bin/sh',
  '-c',
  'exit 0',
]

/** @typedef {{ok: true} | {ok: false, missing: boolean, why: string}} SandboxTrial */

/** Starts a real sandbox: a file called bwrap says little, for the system may refuse it. @returns {SandboxTrial} */
export function trySandbox(env = process.env) {
  const tried = spawnSync('bwrap', TRIAL, {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: 10_000,
  })
  if (tried.status === 0) return { ok: true }
  const missing = tried.error !== undefined && 'code' in tried.error && tried.error.code === 'ENOENT'
  return {
    ok: false,
    missing,
    why: missing ? 'bubblewrap is not installed' : tried.stderr?.trim() || String(tried.error),
  }
}

/**
 * Makes sandboxes work where that is possible, and says what stands in the way where it is not.
 *
 * @param {{signal: AbortSignal}} options
 * @returns {Promise<{ok: boolean, why?: string}>}
 */
export async function ensureSandbox({ signal }) {
  if (process.platform !== 'linux') return { ok: false, why: 'bubblewrap sandboxes need Linux' }
  let trial = trySandbox()
  if (!trial.ok && trial.missing && (await installDebianPackages(['bubblewrap'], 'sandboxes', { signal })))
    trial = trySandbox()
  if (trial.ok) return trial
  if (!trial.missing) {
    say(`bubblewrap is installed, but this system refuses to start a sandbox: ${trial.why}`)
    say(
      'Where AppArmor is the reason (Ubuntu 24.04 and later): sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0',
    )
    say('In a container: start it with --privileged, or with --security-opt seccomp=unconfined.')
  }
  return trial
}
