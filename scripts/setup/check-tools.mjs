import { spawnSync } from 'node:child_process'
import { setUpError } from './set-up-error.mjs'

const NEEDED = [
  {
    name: 'git',
    oldest: '2.38',
    why: 'merges are made with `git merge-tree --write-tree`',
    how: 'Debian and Ubuntu: sudo apt-get install git (Ubuntu 22.04: add ppa:git-core/ppa first); Mac: brew install git',
  },
  {
    name: 'node',
    oldest: '20.0',
    why: 'it runs the set-up',
    how: 'https://nodejs.org, or the package manager of your system',
  },
  {
    name: 'npm',
    oldest: '8.0',
    why: 'it brings the pinned pnpm',
    how: 'it comes with Node from https://nodejs.org',
  },
]

/** Throws one error that names everything missing or too old. @param {NodeJS.ProcessEnv} [env] */
export function checkTools(env = process.env) {
  const wrong = NEEDED.flatMap(({ name, oldest, why, how }) => {
    const version = name === 'node' ? process.versions.node : askVersion(name, env)
    if (version && !olderThan(version, oldest)) return []
    const found = version ? `${name} is ${version}` : `${name} is missing`
    return [`  ${found}; Tutti needs ${name} ${oldest} or newer: ${why}.\n    ${how}`]
  })
  if (wrong.length > 0) throw setUpError(`This machine lacks something:\n${wrong.join('\n')}`)
}

/** @param {string} name @param {NodeJS.ProcessEnv} env */
function askVersion(name, env) {
  const asked = spawnSync(name, ['--version'], { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  return asked.status === 0 ? /\d+\.\d+(\.\d+)?/.exec(asked.stdout)?.[0] : undefined
}

/** @param {string} version @param {string} oldest */
export function olderThan(version, oldest) {
  return version.localeCompare(oldest, 'en', { numeric: true }) < 0
}
