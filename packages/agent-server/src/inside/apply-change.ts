import { createHash, hash, randomUUID } from 'node:crypto'
import {
  closeSync,
  fchmodSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
  type Stats,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { TuttiError, pathProblem } from '@tutti/core'
import {
  changedFile,
  changePath,
  pathBytes,
  pathKey,
  type CapturedChange,
  type FileState,
} from '@tutti/workspace'
import { openFolder } from './open-folder.ts'
import { removeEmpty } from './remove-empty.ts'

/** A small one comes as a whole. */
type Content = Uint8Array | AsyncIterable<Uint8Array>

const slash = Buffer.from('/')
const below = (root: string, path: Uint8Array) => Buffer.concat([Buffer.from(root), slash, path])

/**
 * Makes one path what a change says. Parents are made on the way; a file or link in a parent's place is replaced, never followed. What
 * the file system refuses leaves nothing half made: what was in its way is there again.
 */
export async function applyChange(root: string, change: CapturedChange, content: Content): Promise<void> {
  const path = changePath(change)
  const problem = pathProblem(path)
  if (problem) {
    throw new TuttiError('invalid_argument', `A change names an unsafe path: ${problem}.`, {
      path: Buffer.from(path).toString(),
    })
  }
  if (change.action === 'deleted') return removePath(root, path)
  const components = pathKey(path).split('/')
  const state = changedFile(change)
  const made: Buffer[] = []
  const inTheWay: SetAside[] = []
  try {
    makeFolders(root, state ? components.slice(0, -1) : components, made, inTheWay)
    if (state) await writeFile(below(root, path), state, content, inTheWay)
    for (const { aside } of inTheWay) removeWhole(aside)
  } catch (error) {
    for (const folder of made.reverse()) removeEmpty(folder)
    for (const was of inTheWay) putBack(was)
    throw error
  }
}

/** What is in the way of a change, until that is made. */
interface SetAside {
  readonly path: Buffer
  readonly aside: Buffer
}

/** A name for a moment, in the same folder. */
const besides = (path: Buffer): Buffer =>
  Buffer.concat([path.subarray(0, path.lastIndexOf(47) + 1), Buffer.from(`.tutti-${randomUUID()}`)])

function setAside(path: Buffer): SetAside {
  const aside = besides(path)
  renameSync(path, aside)
  return { path, aside }
}

function putBack({ path, aside }: SetAside): void {
  try {
    rmSync(path, { force: true })
    renameSync(aside, path)
  } catch {
    // Somebody has made something else there meanwhile: nothing of it is lost.
  }
}

/** Also what the agent has made read-only in it, which is no reason for a folder to stay. */
function removeWhole(path: Buffer): void {
  openFolders(path)
  rmSync(path, { recursive: true, force: true })
}

function openFolders(path: Buffer): void {
  if (!lstatSync(path).isDirectory()) return
  openFolder(path)
  for (const entry of readdirSync(path, { withFileTypes: true, encoding: 'buffer' }))
    if (entry.isDirectory()) openFolders(Buffer.concat([path, slash, entry.name]))
}

async function writeFile(
  target: Buffer,
  state: FileState,
  content: Content,
  inTheWay: SetAside[],
): Promise<void> {
  const temporary = besides(target)
  try {
    if (state.fileType === 'symlink') {
      symlinkSync(await collect(content, state), temporary)
    } else if (content instanceof Uint8Array) {
      writeSmall(temporary, checkedWhole(content, state), modeOf(state))
    } else {
      await writeLarge(temporary, checked(content, state), modeOf(state))
    }
    if (lstatSync(target, { throwIfNoEntry: false })?.isDirectory()) inTheWay.push(setAside(target))
    renameSync(temporary, target)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/** Synchronous calls take a fourth of the time, and many small files are what there mostly is. */
function writeSmall(path: Buffer, bytes: Uint8Array, mode: number): void {
  const file = openSync(path, 'wx', mode)
  try {
    writeFileSync(file, bytes)
    // The process's umask must not decide.
    fchmodSync(file, mode)
  } finally {
    closeSync(file)
  }
}

export const modeOf = ({ mode }: FileState): number => (mode === '100755' ? 0o755 : 0o644)

async function writeLarge(path: Buffer, content: AsyncIterable<Uint8Array>, mode: number): Promise<void> {
  const file = await open(path, 'wx', mode)
  try {
    for await (const chunk of content) await file.writeFile(chunk)
    await file.chmod(mode)
  } finally {
    await file.close()
  }
}

async function* checked(content: AsyncIterable<Uint8Array>, state: FileState): AsyncGenerator<Uint8Array> {
  const digest = createHash('sha256')
  for await (const chunk of content) {
    digest.update(chunk)
    yield chunk
  }
  if (`sha256_${digest.digest('hex')}` !== state.hash) throw wrongContent(state)
}

/** @throws TuttiError `data_loss` when it is not that of the hash. */
export function checkedWhole(content: Uint8Array, state: FileState): Uint8Array {
  if (`sha256_${hash('sha256', content)}` !== state.hash) throw wrongContent(state)
  return content
}

function wrongContent({ path, hash }: FileState): TuttiError {
  const shown = Buffer.from(path).toString()
  return new TuttiError('data_loss', `The content of ${shown} is not that of its hash.`, { hash })
}

async function collect(content: Content, state: FileState): Promise<Buffer> {
  if (content instanceof Uint8Array) return Buffer.from(checkedWhole(content, state))
  return Buffer.concat(await Array.fromAsync(checked(content, state)))
}

/**
 * @param made gets the folders that were not there
 * @param inTheWay gets what is no folder
 */
function makeFolders(
  root: string,
  components: readonly string[],
  made: Buffer[],
  inTheWay: SetAside[],
): void {
  let key = ''
  for (const component of components) {
    key = key === '' ? component : `${key}/${component}`
    const folder = below(root, pathBytes(key))
    const stats = lstatSync(folder, { throwIfNoEntry: false })
    if (stats?.isDirectory()) continue
    if (stats) inTheWay.push(setAside(folder))
    mkdirSync(folder)
    made.push(folder)
  }
}

/** What is there; nothing where the file system knows no such name. */
function look(path: Buffer): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENAMETOOLONG') return undefined
    throw error
  }
}

/** A folder that is left with nothing goes too: one that was left empty by the agent has a change of its own, which makes it again. */
function removePath(root: string, path: Uint8Array): void {
  const components = pathKey(path).split('/')
  for (let depth = 1; depth < components.length; depth += 1) {
    const parent = look(below(root, pathBytes(components.slice(0, depth).join('/'))))
    // Below a link or a file there is nothing of this workspace's.
    if (!parent?.isDirectory()) return
  }
  const stats = look(below(root, path))
  if (stats && !stats.isDirectory()) unlinkSync(below(root, path))
  const folders = stats?.isDirectory() ? components.length : components.length - 1
  for (let depth = folders; depth > 0; depth -= 1) {
    if (!removeEmpty(below(root, pathBytes(components.slice(0, depth).join('/'))))) return
  }
}
