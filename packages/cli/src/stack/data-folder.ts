import { randomBytes } from 'node:crypto'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { TuttiError } from '@tutti/core'
import { endpointFile, type Endpoint } from '@tutti/client'

/** Version of the data folder's layout; a newer one is refused (design §9). */
export const dataFormat = 1

export interface DataFolder {
  readonly path: string
  readonly temporalDir: string
}

/**
 * Opens a data folder, or makes it: mode 0700 and a `format` file.
 *
 * @throws TuttiError `failed_precondition` when a newer version of Tutti made it, or when it is not a data folder.
 */
export function openDataFolder(path: string): DataFolder {
  makePrivate(path)
  checkFormat(path)
  const temporalDir = join(path, 'temporal')
  makePrivate(temporalDir)
  return { path, temporalDir }
}

/**
 * Makes a folder (mode 0700) and those above it that are missing.
 *
 * @throws TuttiError `failed_precondition` when that is not possible.
 */
export function makePrivate(path: string): void {
  try {
    makeFolder(path)
  } catch (error) {
    throw new TuttiError(
      'failed_precondition',
      `The data folder ${path} cannot be made (${(error as NodeJS.ErrnoException).code}). Choose another with --data-dir.`,
      { path },
      error,
    )
  }
}

/** Step by step: Node's own `recursive` never ends below a folder that takes no other one, such as /proc. */
function makeFolder(path: string): void {
  if (!existsSync(path) && dirname(path) !== path) makeFolder(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}

function checkFormat(path: string): void {
  const file = join(path, 'format')
  createOnce(file, `${dataFormat}\n`, 0o600)
  const text = readFileSync(file, 'utf8').trim()
  const found = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (found <= dataFormat) return
  throw new TuttiError(
    'failed_precondition',
    Number.isNaN(found)
      ? `${file} is damaged. Restore it, or choose another folder with --data-dir.`
      : `The data folder ${path} has format ${found}; this version of Tutti knows up to ${dataFormat}. Use the version that made it, or another --data-dir.`,
    { path, format: text.slice(0, 20) },
  )
}

/** Appears complete or not at all, and only if nobody else was first. */
function createOnce(file: string, text: string, mode: number): void {
  const own = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
  writeFileSync(own, text, { mode, flush: true })
  try {
    linkSync(own, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(own, { force: true })
  }
}

/** Says where the server answers; replaces what a killed one left. */
export function writeEndpoint(dataDir: string, endpoint: Endpoint): void {
  const file = endpointFile(dataDir)
  const own = `${file}.${process.pid}`
  writeFileSync(own, `${JSON.stringify(endpoint)}\n`, { mode: 0o600, flush: true })
  renameSync(own, file)
}

/** Removes the endpoint if it is this process's own. */
export function removeEndpoint(dataDir: string): void {
  const file = endpointFile(dataDir)
  try {
    const { pid } = JSON.parse(readFileSync(file, 'utf8')) as Endpoint
    if (pid === process.pid) rmSync(file, { force: true })
  } catch {
    // Gone, or being replaced by the one that took over.
  }
}
