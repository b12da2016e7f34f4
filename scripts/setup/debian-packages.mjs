import { existsSync } from 'node:fs'
import { runStep } from './run-step.mjs'
import { say } from './say.mjs'

/** True where this process may install Debian packages: root on a system that has apt. */
export function mayInstallPackages() {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && existsSync('/usr/bin/apt-get')
}

/**
 * Installs packages where that is possible; elsewhere prints the one command to run.
 *
 * @param {readonly string[]} packages
 * @param {string} why
 * @param {{signal: AbortSignal}} options
 * @returns {Promise<boolean>} whether they were installed
 */
export async function installDebianPackages(packages, why, { signal }) {
  if (!mayInstallPackages()) {
    say(`Missing: ${packages.join(' ')} (${why}). To install: ${installCommand(packages)}`)
    return false
  }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const install = () =>
    runStep(
      `Installing Debian packages: ${packages.join(' ')} (${why})`,
      'apt-get',
      ['install', '--yes', '--no-install-recommends', ...packages],
      { signal, env },
    )
  let installed = await install()
  if (!installed.ok) {
    // A fresh container has no package lists, or stale ones.
    await runStep('Reading the package lists', 'apt-get', ['update'], { signal, env })
    installed = await install()
  }
  if (!installed.ok)
    say(`apt-get could not install them:\n${installed.output.trim().split('\n').slice(-5).join('\n')}`)
  return installed.ok
}

/** @param {readonly string[]} packages */
function installCommand(packages) {
  if (process.platform === 'darwin') return `brew install ${packages.join(' ')}`
  if (existsSync('/etc/debian_version')) return `sudo apt-get install ${packages.join(' ')}`
  if (existsSync('/usr/bin/dnf')) return `sudo dnf install ${packages.join(' ')}`
  return `your package manager's install of ${packages.join(' ')}`
}
