import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative } from 'node:path'
import { TuttiError } from '@tutti/core'

/** Reads a file of the workspace. @throws TuttiError `not_found`, `invalid_argument`. */
export async function readWorkspaceFile(workdir: string, path: string, maxBytes: number): Promise<Buffer> {
  const target = await inWorkspace(workdir, path)
  // Without O_NONBLOCK a fifo would hold the opening thread until somebody writes.
  const file = await open(target, constants.O_RDONLY | constants.O_NONBLOCK).catch(
    (cause: NodeJS.ErrnoException) => {
      throw notFound(path, cause)
    },
  )
  try {
    if (!(await file.stat()).isFile())
      throw new TuttiError('invalid_argument', `${path} is not a file.`, { path })
    const parts: Buffer[] = []
    let length = 0
    while (length < maxBytes) {
      const buffer = Buffer.allocUnsafe(Math.min(1 << 20, maxBytes - length))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, length)
      if (bytesRead === 0) break
      parts.push(buffer.subarray(0, bytesRead))
      length += bytesRead
    }
    return Buffer.concat(parts)
  } finally {
    await file.close()
  }
}

/** Writes a whole file, making its folders; it appears at once or not at all and keeps the mode that it had. */
export async function writeWorkspaceFile(workdir: string, path: string, bytes: Uint8Array): Promise<void> {
  const target = await inWorkspace(workdir, path)
  const before = await stat(target).catch(() => undefined)
  if (before && !before.isFile()) throw new TuttiError('invalid_argument', `${path} is not a file.`, { path })
  await mkdir(dirname(target), { recursive: true })
  const temporary = join(dirname(target), `.tutti-${randomUUID()}`)
  try {
    await writeFile(temporary, bytes, { flag: 'wx', mode: (before?.mode ?? 0o644) & 0o777 })
    await rename(temporary, target)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** The real path behind a relative one, through links, which must not lead out of the workspace. */
async function inWorkspace(workdir: string, path: string): Promise<string> {
  if (path === '' || path.includes('\0') || isAbsolute(path)) {
    throw new TuttiError('invalid_argument', `The path ${path} must be relative to the workspace.`, { path })
  }
  const root = await realpath(workdir)
  const target = join(root, path)
  const missing: string[] = []
  for (let part = target; ; part = dirname(part)) {
    const real = await realpath(part).catch(() => undefined)
    if (real === undefined) {
      missing.unshift(basename(part))
      continue
    }
    const found = join(real, ...missing)
    const below = relative(root, found)
    if (below === '' || below.startsWith('..') || isAbsolute(below)) {
      throw new TuttiError('invalid_argument', `The path ${path} leads out of the workspace.`, { path })
    }
    return found
  }
}

const notFound = (path: string, cause: NodeJS.ErrnoException) =>
  cause.code === 'ENOENT' || cause.code === 'ENOTDIR'
    ? new TuttiError('not_found', `There is no file ${path} in the workspace.`, { path }, cause)
    : new TuttiError('invalid_argument', `${path} cannot be read (${cause.code}).`, { path }, cause)
