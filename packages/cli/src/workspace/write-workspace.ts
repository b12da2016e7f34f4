import { randomUUID } from 'node:crypto'
import {
  chmod,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  type FileHandle,
} from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { belowAny, pathProblem, TuttiError } from '@tutti/core'
import type { ReadWorkspaceResponse, WorkspaceEntry, WorkspaceSummary } from '@tutti/proto'
import { explainRefusal } from './explain-refusal.ts'

const slash = 0x2f

/** Where a workspace is written until all of it is there, and how it comes into its folder; `undo` leaves what was there before. */
interface Place {
  readonly temporary: string
  finish(): Promise<void>
  undo(): Promise<void>
}

/**
 * Writes a workspace into a folder, which has it as a whole or not at all; one that is there stays itself. Links come last, so that
 * nothing is ever written through one.
 *
 * @throws TuttiError `failed_precondition` when something is in the folder, or the file system refuses it; `data_loss` for what cannot be
 *   written as it came.
 */
export async function writeWorkspace(
  parts: AsyncIterable<ReadWorkspaceResponse>,
  folder: string,
): Promise<WorkspaceSummary> {
  try {
    const place = await openPlace(resolve(folder))
    try {
      await mkdir(place.temporary)
      const summary = await writeParts(parts, Buffer.from(`${place.temporary}/`))
      await place.finish()
      return summary
    } catch (error) {
      await rm(place.temporary, { recursive: true, force: true })
      await place.undo()
      throw error
    }
  } catch (error) {
    throw explainRefusal(error, `--to ${folder}`, { flag: '--to' })
  }
}

async function openPlace(target: string): Promise<Place> {
  const name = `.tutti-${randomUUID()}`
  const real = await ifThere(realpath(target))
  if (real === undefined) {
    if (await ifThere(lstat(target)))
      throw inTheWay(target, 'it is a link to what is not there', 'remove the link, or name another folder')
    const parents: string[] = []
    await makeFolders(dirname(target), parents)
    const temporary = join(dirname(target), name)
    return { temporary, finish: () => rename(temporary, target), undo: () => removeEmpty(parents) }
  }
  const left = await readdir(real)
  if (left.length > 0) throw inTheWay(target, 'something is in it; name a new folder')
  // It may be where a shell stands or a disk is mounted, and its mode is its owner's: it is not replaced.
  const temporary = join(real, name)
  return { temporary, finish: () => moveUp(temporary, real), undo: async () => {} }
}

/** What is missing of a path, from its top. Node's own `recursive` says not all of it, and never ends below /proc. */
async function makeFolders(path: string, made: string[]): Promise<void> {
  if (await ifThere(stat(path))) return
  await makeFolders(dirname(path), made)
  try {
    await mkdir(path)
    made.push(path)
  } catch (error) {
    await removeEmpty(made)
    throw error
  }
}

async function removeEmpty(folders: readonly string[]): Promise<void> {
  for (const folder of folders.toReversed()) await rmdir(folder).catch(() => undefined)
}

/** Brings what is in a folder into the one above it, which has nothing else: all or nothing. */
async function moveUp(from: string, to: string): Promise<void> {
  const names = await readdir(from, { encoding: 'buffer' })
  if ((await readdir(to)).length > 1) throw inTheWay(to, 'something has come into it; name a new folder')
  const moved: Buffer[] = []
  try {
    for (const name of names) {
      const path = Buffer.concat([Buffer.from(`${to}/`), name])
      await rename(Buffer.concat([Buffer.from(`${from}/`), name]), path)
      moved.push(path)
    }
    await rmdir(from)
  } catch (error) {
    for (const path of moved) await rm(path, { recursive: true, force: true })
    throw error
  }
}

const inTheWay = (folder: string, problem: string, next = 'the same command with a new folder') =>
  new TuttiError('failed_precondition', `--to ${folder}: ${problem}.`, { flag: '--to', next })

const ifThere = <T>(reading: Promise<T>): Promise<T | undefined> =>
  reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })

async function writeParts(
  parts: AsyncIterable<ReadWorkspaceResponse>,
  root: Buffer,
): Promise<WorkspaceSummary> {
  let entry: WorkspaceEntry | undefined
  let file: FileHandle | undefined
  let links: Buffer[] = []
  const leaves = new Set<string>()
  let written = 0n
  const finish = async () => {
    if (!entry) return
    if (entry.mode !== '040000' && written !== entry.size)
      throw damaged(entry, 'it is not as long as announced')
    if (entry.mode === '120000') await symlink(Buffer.concat(links), at(root, entry))
    await file?.close()
    file = undefined
  }
  try {
    for await (const { part } of parts) {
      if (part.case === 'summary') {
        await finish()
        return part.value
      }
      if (part.case === 'entry') {
        await finish()
        entry = part.value
        links = []
        written = 0n
        checkParents(leaves, entry)
        file = await begin(root, entry)
      } else if (part.case === 'content' && entry) {
        written += BigInt(part.value.length)
        if (entry.mode === '120000') links.push(Buffer.from(part.value))
        else await file?.writeFile(part.value)
      }
    }
    throw new TuttiError('unavailable', 'The server ended before it had sent everything; try again.')
  } finally {
    await file?.close().catch(() => undefined)
  }
}

/** Nothing lies below a file or a link: what a link leads to is not ours to write to. */
function checkParents(leaves: Set<string>, entry: WorkspaceEntry): void {
  const key = Buffer.from(entry.path).toString('latin1')
  if (belowAny(leaves)(key)) throw damaged(entry, 'it lies below what is no folder')
  if (entry.mode !== '040000') leaves.add(key)
}

/** Parents are made as folders of ours: nothing that is not one can be in their place before the links come. */
async function begin(root: Buffer, entry: WorkspaceEntry): Promise<FileHandle | undefined> {
  const problem = pathProblem(entry.path)
  if (problem) throw damaged(entry, problem)
  const path = at(root, entry)
  if (entry.mode === '040000') return void (await mkdir(path, { recursive: true }))
  if (entry.path.includes(slash)) await mkdir(path.subarray(0, path.lastIndexOf(slash)), { recursive: true })
  if (entry.mode === '120000') return undefined
  const file = await open(path, 'wx', 0o644)
  if (entry.mode === '100755') await chmod(path, 0o755)
  return file
}

const at = (root: Buffer, { path }: WorkspaceEntry): Buffer => Buffer.concat([root, path])

const damaged = ({ path }: WorkspaceEntry, problem: string) =>
  new TuttiError('data_loss', `${Buffer.from(path).toString()} cannot be written: ${problem}.`)
