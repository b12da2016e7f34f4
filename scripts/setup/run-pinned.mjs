import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { pathToFileURL, fileURLToPath } from 'node:url'
import { memoryArguments, memoryEnvironment } from './memory.mjs'
import { pinnedEnvironment, pinnedNode } from './pinned-node.mjs'
import { setUpError } from './set-up-error.mjs'
import { watchParent } from './watch-parent.mjs'

/** @type {NodeJS.Signals[]} */
const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGWINCH']
/** Ctrl-C reaches us from the terminal and again from npm, which passes it on: both are one press. */
const ONE_PRESS_MS = 250

/**
 * Runs a TypeScript program on the pinned Node with our streams, and resolves to its exit code. It gets a session of
 * its own, so that one Ctrl-C arrives once: a second one means "kill" to a running ensemble. Under npm or npx it gets SIGTERM
 * when these end, for they do not pass theirs on; started by itself it may outlive its shell, as a daemon does.
 *
 * @param {readonly string[]} args program and arguments
 * @returns {Promise<number>}
 */
export async function runPinned(args) {
  const node = pinnedNode()
  if (!node)
    throw setUpError('This checkout is not set up yet. Run `npm run demo` or `npm test` in it first.')
  const watch = pathToFileURL(fileURLToPath(new URL('end-with-parent.mjs', import.meta.url))).href
  const child = spawn(node, [...memoryArguments, '--import', watch, ...args], {
    env: { ...memoryEnvironment, ...pinnedEnvironment(), TUTTI_PARENT_PID: String(process.pid) },
    stdio: 'inherit',
    detached: true,
  })
  /** @type {Map<string, number>} */
  const last = new Map()
  /** @param {NodeJS.Signals} name */
  const forward = (name) => {
    const now = performance.now()
    if (now - (last.get(name) ?? -Infinity) >= ONE_PRESS_MS) child.kill(name)
    last.set(name, now)
  }
  for (const name of FORWARDED) process.on(name, forward)
  const unwatch = process.env['npm_command'] ? watchParent(() => forward('SIGTERM')) : () => {}
  try {
    return await new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 1)))
    })
  } finally {
    unwatch()
    for (const name of FORWARDED) process.off(name, forward)
  }
}
