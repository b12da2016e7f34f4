import { randomBytes } from 'node:crypto'
import { chmod, link, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'

import { TuttiError } from '@tutti/core'

/** Name of the key's file in a data folder. */
export const localKeyFile = 'local-key'

/**
 * The data folder's key, made when it is not there: 32 random bytes in base64url, in a file that only its user can read (0600).
 * Several processes may call it at once; all get the same key.
 *
 * @throws TuttiError `failed_precondition` when the file's content is no key; `unavailable` when the folder cannot be written.
 */
export async function ensureLocalKey(dataDir: string): Promise<string> {
  const path = join(dataDir, localKeyFile)
  try {
    return (await readKey(path)) ?? (await makeKey(path, dataDir))
  } catch (error) {
    if (error instanceof TuttiError) throw error
    throw new TuttiError('unavailable', `The key file ${path} cannot be read or written.`, { path }, error)
  }
}

async function readKey(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  const key = text.trim()
  if (!/^[A-Za-z0-9_-]{43}$/.test(key)) {
    throw new TuttiError(
      'failed_precondition',
      `${path} is not a key of Tutti. Delete it; the next start makes a new one.`,
      { path },
    )
  }
  await chmod(path, 0o600)
  return key
}

/** Complete under its name or not there at all; a rival that was faster wins. */
async function makeKey(path: string, dataDir: string): Promise<string> {
  await mkdir(dataDir, { recursive: true })
  const key = randomBytes(32).toString('base64url')
  const temporary = `${path}.${randomBytes(6).toString('hex')}`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(`${key}\n`)
    await file.sync()
    await link(temporary, path)
    return key
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return (await readKey(path)) ?? key
  } finally {
    await file.close()
    await unlink(temporary)
  }
}
