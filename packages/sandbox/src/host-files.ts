import { constants } from 'node:fs'
import { mkdir, open, readlink, writeFile, type FileHandle } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { TuttiError } from '@tutti/core'

/** A path inside, on the host: below one of the sandbox's own folders, or refused. */
export function hostPath(
  path: string,
  folders: readonly { readonly inside: string; readonly host: string }[],
): { root: string; below: string[] } {
  const clean = normalize(path)
  for (const { inside, host } of folders) {
    if (clean.startsWith(`${inside}/`))
      return { root: host, below: clean.slice(inside.length + 1).split('/') }
  }
  throw new TuttiError(
    'invalid_argument',
    `${path} is not below the workspace or the home folder of the sandbox.`,
    { path },
  )
}

/** Only while nothing runs inside: the folders on the way are then what the host made. */
export async function putHostFile(
  root: string,
  below: readonly string[],
  bytes: Uint8Array,
  mode: number,
): Promise<void> {
  const path = join(root, ...below)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, bytes, { mode, flag: 'wx' })
}

/**
 * Reads a file that an agent may be swapping for a link meanwhile: goes from folder to folder by descriptor and follows nothing.
 *
 * @throws TuttiError `not_found` when it is not there or not a plain file below the root.
 */
export async function getHostFile(
  root: string,
  below: readonly string[],
  maxBytes: number,
): Promise<Uint8Array> {
  const opened: FileHandle[] = []
  try {
    let folder = root
    for (const [index, name] of below.entries()) {
      const last = index === below.length - 1
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
      const handle = await open(join(folder, name), last ? flags : flags | constants.O_DIRECTORY)
      opened.push(handle)
      folder = `/proc/self/fd/${handle.fd}`
    }
    const file = opened.at(-1)!
    if (!(await file.stat()).isFile()) throw new Error(`not a file: ${await readlink(folder)}`)
    const buffer = Buffer.alloc(maxBytes)
    const { bytesRead } = await file.read(buffer, 0, maxBytes, 0)
    return buffer.subarray(0, bytesRead)
  } catch (cause) {
    throw new TuttiError(
      'not_found',
      `There is no file ${below.join('/')} to read in the sandbox.`,
      {},
      cause,
    )
  } finally {
    for (const handle of opened) await handle.close()
  }
}
