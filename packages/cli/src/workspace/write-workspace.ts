import { randomUUID } from 'node:crypto'
import { chmod, mkdir, open, readdir, rename, rm, rmdir, symlink, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { belowAny, pathProblem, TuttiError } from '@tutti/core'
import type { ReadWorkspaceResponse, WorkspaceEntry, WorkspaceSummary } from '@tutti/proto'

const slash = 0x2f

/**
 * Writes a workspace into a folder, which appears as a whole or not at all. Links come last, so that nothing is ever written through
 * one.
 *
 * @throws TuttiError `failed_precondition` when something is in the folder; `data_loss` for what cannot be written as it came.
 */
export async function writeWorkspace(
  parts: AsyncIterable<ReadWorkspaceResponse>,
  folder: string,
): Promise<WorkspaceSummary> {
  const target = resolve(folder)
  const left = await readdir(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new TuttiError(
      'failed_precondition',
      `--to ${folder}: it cannot be looked into.`,
      { flag: '--to' },
      error,
    )
  })
  if (left.length > 0)
    throw new TuttiError('failed_precondition', `--to ${folder}: something is in it; name a new folder.`, {
      flag: '--to',
      next: 'the same command with a new folder',
    })
  await mkdir(dirname(target), { recursive: true })
  const temporary = join(dirname(target), `.${basename(target)}.${randomUUID()}`)
  try {
    await mkdir(temporary)
    const summary = await writeParts(parts, Buffer.from(`${temporary}/`))
    await rmdir(target).catch(() => undefined)
    await rename(temporary, target)
    return summary
  } catch (error) {
    await rm(temporary, { recursive: true, force: true })
    throw error
  }
}

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
