import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ensureS3Servers } from './setup/ensure-s3-servers.mjs'
import { pinnedEnvironment } from './setup/pinned-node.mjs'
import { root } from './setup/root.mjs'
import { say } from './setup/say.mjs'
import { setUp } from './setup/set-up.mjs'
import { untilInterrupted } from './setup/until-interrupted.mjs'

/** @typedef {{passed: number, failed: number, skipped: {test: string, why: string}[], flaky: string[]}} Total */

const totalPath = join(root, 'node_modules', '.cache', 'tutti', `total-${process.pid}.json`)
const total = {
  passed: 0,
  failed: 0,
  skipped: /** @type {Total['skipped']} */ ([]),
  flaky: /** @type {string[]} */ ([]),
}

await untilInterrupted(async (signal) => {
  // Begun first and needed last: one of them takes a minute to compile.
  let installing = true
  const s3Servers = ensureS3Servers({ signal })
    .catch((error) => {
      if (!signal.aborted) say(`The S3 servers for tests cannot be installed: ${error.message}`)
    })
    .finally(() => (installing = false))
  try {
    await setUp({ signal, forTests: true })
    for (const check of ['lint', 'typecheck']) {
      say(`\n── ${check}`)
      if ((await run('npm', ['run', '--silent', check], signal)) !== 0) total.failed += 1
    }
    if (installing) say('Waiting for the S3 servers for tests: one of them is compiled …')
    await s3Servers
    say('\n── tests')
    await runTests(signal)
  } catch (error) {
    total.failed += 1
    throw error
  } finally {
    process.on('exit', printTotal)
  }
  return total.failed > 0 || (process.env['TUTTI_FORBID_SKIPS'] && total.skipped.length > 0) ? 1 : 0
})

/** @param {AbortSignal} signal */
async function runTests(signal) {
  mkdirSync(dirname(totalPath), { recursive: true })
  const code = await run('vitest', ['run', ...process.argv.slice(2)], signal, { TUTTI_TEST_TOTAL: totalPath })
  try {
    /** @type {Total} */
    const counted = JSON.parse(readFileSync(totalPath, 'utf8'))
    total.passed += counted.passed
    total.failed += counted.failed
    total.skipped = counted.skipped
    total.flaky = counted.flaky ?? []
    // Vitest also fails for what belongs to no test, such as an unhandled rejection after the last one.
    if (code !== 0 && counted.failed === 0) total.failed += 1
  } catch {
    say('The test runner ended without a result.')
    total.failed += 1
  } finally {
    rmSync(totalPath, { force: true })
  }
}

/**
 * In our own process group, so that a Ctrl-C of the terminal reaches the tools too; an abort is passed on to the one
 * that was started.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {AbortSignal} signal
 * @param {Record<string, string>} [env]
 * @returns {Promise<number | null>}
 */
async function run(command, args, signal, env = {}) {
  signal.throwIfAborted()
  const child = spawn(command, args, {
    cwd: root,
    env: { ...pinnedEnvironment(), ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const pass = () => child.kill('SIGTERM')
  signal.addEventListener('abort', pass, { once: true })
  try {
    return await new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', resolve)
    })
  } finally {
    signal.removeEventListener('abort', pass)
    signal.throwIfAborted()
  }
}

/** On exit, because an uncaught error is printed after everything else; the total has to stand last. */
function printTotal() {
  for (const { test, why } of total.skipped) say(`skipped: ${test}: ${why}`)
  for (const test of total.flaky) say(`flaky, passed when tried again: ${test}`)
  if (process.env['TUTTI_FORBID_SKIPS'] && total.skipped.length > 0)
    say('Skipped tests count as a failure here.')
  process.stdout.write(`${total.passed} passed, ${total.failed} failed, ${total.skipped.length} skipped\n`)
}
