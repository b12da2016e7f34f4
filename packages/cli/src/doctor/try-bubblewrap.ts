import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'

export interface TriedBubblewrap {
  readonly works: boolean
  /** One line. */
  readonly found: string
  /** Empty when it works. */
  readonly fix: string
}

const run = promisify(execFile)

/** Starts the smallest sandbox there is: that a program is installed says nothing about what the system lets it do. */
export async function tryBubblewrap(signal?: AbortSignal): Promise<TriedBubblewrap> {
  if (process.platform !== 'linux') {
    return {
      works: false,
      found: 'bubblewrap needs Linux',
      fix: 'Run Tutti in a Linux machine or container; --isolation none lets agents do what you can do.',
    }
  }
  const options = { timeout: 10_000, ...(signal && { signal }) }
  let version: string
  try {
    version = (await run('bwrap', ['--version'], options)).stdout.trim()
  } catch {
    return {
      works: false,
      found: 'bubblewrap is not installed',
      fix: 'Debian and Ubuntu: sudo apt-get install bubblewrap',
    }
  }
  try {
    const args = [
      '--unshare-all',
      '--die-with-parent',
      '--ro-bind',
      '/',
      '/',
      '--proc',
      '/proc',
      '--dev',
      '/dev',
      'true',
    ]
    await run('bwrap', args, options)
    return { works: true, found: version, fix: '' }
  } catch (error) {
    const [reason = ''] = String((error as { stderr?: string }).stderr ?? '').split('\n')
    return {
      works: false,
      found: `${version} is installed but cannot start a sandbox: ${reason}`.trim(),
      fix: refusal(),
    }
  }
}

function refusal(): string {
  return readOne('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1'
    ? 'AppArmor refuses user namespaces: give bwrap a profile (Ubuntu: the package apparmor-profiles has bwrap-userns-restrict), or sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0'
    : 'The system refuses user namespaces; in a container, allow them (for example --security-opt seccomp=unconfined --cap-add SYS_ADMIN).'
}

function readOne(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}
