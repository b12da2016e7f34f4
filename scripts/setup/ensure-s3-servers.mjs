import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { runStep } from './run-step.mjs'
import { s3ServerFolder, s3ServerPrograms } from './s3-servers.mjs'
import { say } from './say.mjs'

/** @typedef {import('./s3-servers.mjs').S3ServerProgram} S3ServerProgram */

const ABANDONED_MS = 3_600_000

/**
 * Installs the S3 servers of the tests into the user's cache folder, once. Says what is lacking where that cannot be; the tests that
 * need it are skipped then, with the same reason. Quiet while it works, as it runs beside the checks.
 *
 * @param {{signal: AbortSignal, env?: NodeJS.ProcessEnv}} options
 */
export async function ensureS3Servers({ signal, env = process.env }) {
  for (const program of s3ServerPrograms) {
    const folder = s3ServerFolder(program, env)
    if (existsSync(join(folder, program.file))) continue
    const title = `${program.name} ${program.version}`
    const [command, ...args] = program.test
    const able = await runStep(`Asking for ${command}`, command, args, { signal, env, quiet: true })
    if (!able.ok) {
      say(`${title}, an S3 server for tests, cannot be installed. It needs ${program.needs}.`)
      continue
    }
    say(`Installing ${title} in the background, once: an S3 server for tests …`)
    const installed = await install(program, folder, { signal, env })
    if (!installed.ok) {
      const last = installed.output.trim().split('\n').slice(-5).join('\n')
      say(`${title} could not be installed; it needs ${program.needs}:\n${last}`)
    }
  }
}

/**
 * Appears complete or not at all, and of two installs at once either may win.
 *
 * @param {S3ServerProgram} program @param {string} folder @param {{signal: AbortSignal, env: NodeJS.ProcessEnv}} options
 */
async function install(program, folder, { signal, env }) {
  const parent = dirname(folder)
  await mkdir(parent, { recursive: true })
  await removeAbandoned(parent)
  const private_ = join(parent, `.tmp-${randomUUID()}`)
  const made = join(private_, 'made')
  const temporaries = join(private_, 'tmp')
  await mkdir(made, { recursive: true })
  await mkdir(temporaries)
  try {
    const [command, ...args] = program.install(made)
    const own = { ...env, GOBIN: made, TMPDIR: temporaries }
    const done = await runStep(program.name, command, args, { signal, env: own, quiet: true })
    if (!done.ok || !existsSync(join(made, program.file))) return { ok: false, output: done.output }
    await rename(made, folder).catch((error) => {
      if (!existsSync(join(folder, program.file))) throw error
    })
    return { ok: true, output: '' }
  } finally {
    await rm(private_, { recursive: true, force: true })
  }
}

/** Left by installs that were killed. Young ones may belong to one that is running now. @param {string} parent */
async function removeAbandoned(parent) {
  for (const name of await readdir(parent)) {
    if (!name.startsWith('.tmp-')) continue
    const found = await stat(join(parent, name)).catch(() => undefined)
    if (found && Date.now() - found.mtimeMs > ABANDONED_MS)
      await rm(join(parent, name), { recursive: true, force: true })
  }
}
