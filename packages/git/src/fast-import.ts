import { randomUUID } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { foldersOf, TuttiError } from '@tutti/core'
import { gitDate, identity } from './hardened.ts'
import { withLockRepair } from './lock-repair.ts'
import type { TreeChange } from './port.ts'
import { readAhead, type Content } from './read-ahead.ts'
import { checkHash, checkOwnRef } from './ref-name.ts'
import type { GitRunner } from './run-git.ts'
import { isContentMode, isTreeMode, type TreeMode } from './tree-mode.ts'
import { checkPath, quotePath } from './tree-path.ts'

/** A path with an object that the mirror has already; how `combine` writes what needs no new bytes. */
export interface KnownObject {
  readonly path: Uint8Array
  readonly mode: TreeMode
  readonly oid: string
}

export interface ImportRequest {
  /** The commit begins with its tree and has it as its only parent. */
  readonly parent: string
  /** The tree that it begins with instead. */
  readonly tree?: string
  readonly changes: readonly (TreeChange | KnownObject)[]
  readonly message: string
  readonly atMs: number
  /** One of our own, moved to the commit in the same step; without it no ref is moved. */
  readonly ref?: string
}

/** A commit that is in the mirror now. */
export interface MadeCommit {
  readonly commit: string
  readonly tree: string
}

/**
 * Builds one commit with `git fast-import`: no work tree, no index, no filter, any byte in a name. The same request gives the
 * same commit.
 *
 * @throws TuttiError `invalid_argument` for an unsafe path, for two changes that cannot both be, and for every hash, ref, mode or
 *   size that is none: whatever stands in the script could be a command of it. `data_loss` when a content is not as long as it said.
 */
export async function importCommit(
  git: GitRunner,
  gitDir: string,
  request: ImportRequest,
  signal: AbortSignal,
): Promise<MadeCommit> {
  checkHash(request.parent, 'parent')
  if (request.tree !== undefined) checkHash(request.tree, 'tree')
  if (request.ref !== undefined) checkOwnRef(request.ref)
  checkChanges(request.changes)
  return await withLockRepair(gitDir, signal, () => runImport(git, gitDir, request, signal))
}

async function runImport(
  git: GitRunner,
  gitDir: string,
  request: ImportRequest,
  signal: AbortSignal,
): Promise<MadeCommit> {
  const broken: { error?: TuttiError } = {}
  try {
    const output = await git.run(['fast-import', '--quiet', '--force', '--done', '--date-format=raw'], {
      gitDir,
      signal,
      input: script(request, broken),
      timeoutMs: transferTimeoutMs,
    })
    const [, commit, tree] = answered.exec(output.stdout.toString('latin1')) ?? []
    if (output.exitCode === 0 && broken.error === undefined && commit && tree) return { commit, tree }
    const cause = new Error(output.stderr)
    throw (
      broken.error ?? new TuttiError('internal', 'git fast-import failed; the log has its output.', {}, cause)
    )
  } catch (error) {
    await removeCrashReports(gitDir)
    throw error
  }
}

/** What `get-mark` and `ls` say of the commit and of its root. */
const answered = /^([0-9a-f]+)\n040000 tree ([0-9a-f]+)\t\n$/

/** fast-import leaves one when its input ends early; it would lie there for ever. */
async function removeCrashReports(gitDir: string): Promise<void> {
  const names = await readdir(gitDir).catch(() => [])
  const reports = names.filter((name) => name.startsWith('fast_import_crash_'))
  await Promise.all(reports.map((name) => rm(join(gitDir, name), { force: true })))
}

/** A checkpoint may carry gigabytes. */
const transferTimeoutMs = 30 * 60_000

async function* script(
  { parent, tree, changes, message, atMs, ref }: ImportRequest,
  broken: { error?: TuttiError },
): AsyncGenerator<Uint8Array> {
  // fast-import knows no commit without a ref; this one is taken back before it is ever written.
  const passing = `refs/tutti/import/${randomUUID()}`
  try {
    const text = Buffer.from(message.replaceAll('\0', ''))
    const who = `${identity.name} <${identity.email}> ${gitDate(atMs)}`
    yield Buffer.from(
      `commit ${ref ?? passing}\nmark :1\nauthor ${who}\ncommitter ${who}\ndata ${text.length}\n`,
    )
    yield text
    yield Buffer.from(`\nfrom ${parent}\n`)
    // The empty path is the root.
    if (tree !== undefined) yield Buffer.from(`M 040000 ${tree} ""\n`)
    // Deletes first: a folder in the place of a file must find it gone.
    for (const change of changes) {
      if ('deleted' in change) yield Buffer.concat([Buffer.from('D '), quotePath(change.path), newline])
    }
    const contents = readAhead(changes.filter((change) => 'size' in change))
    for (const change of changes) {
      if ('deleted' in change) continue
      if ('oid' in change) {
        yield Buffer.concat([Buffer.from(`M ${change.mode} ${change.oid} `), quotePath(change.path), newline])
      } else {
        yield Buffer.concat([Buffer.from(`M ${change.mode} inline `), quotePath(change.path), newline])
        yield Buffer.from(`data ${change.size}\n`)
        yield* exactly(change, (await contents.next()).value)
        yield newline
      }
    }
    const back = ref ? '' : `reset ${passing}\nfrom ${'0'.repeat(parent.length)}\n\n`
    yield Buffer.from(`get-mark :1\nls :1 ""\n${back}done\n`)
  } catch (error) {
    // Without `done` git discards everything; the reason is ours to tell.
    broken.error = TuttiError.from(error)
  }
}

const newline = Buffer.from('\n')

async function* exactly(
  change: Extract<TreeChange, { size: number }>,
  content: Content | undefined | void,
): AsyncGenerator<Uint8Array> {
  let length = 0
  for await (const chunk of content ?? []) {
    length += chunk.length
    if (length > change.size) break
    yield chunk
  }
  if (length !== change.size) {
    const path = Buffer.from(change.path).toString('utf8')
    throw new TuttiError(
      'data_loss',
      `The content of ${path} is not the ${change.size} bytes that it should be.`,
      {
        path,
      },
    )
  }
}

/** What goes into the script as it is, whatever the types have promised. */
function checkFields(change: TreeChange | KnownObject): void {
  if ('deleted' in change) {
    // A base may have paths that are not safe, and they may go; to git an empty one is the whole tree.
    if (change.path.length === 0 || change.path.includes(0)) refuse(change.path, 'names nothing')
    return
  }
  checkPath(change.path)
  if ('oid' in change) {
    if (!isTreeMode(change.mode)) refuse(change.path, 'has a mode that is none of git', 'mode')
    checkHash(change.oid, 'changes.oid')
    return
  }
  if (!isContentMode(change.mode)) refuse(change.path, 'has a mode that is none of a file', 'mode')
  if (!Number.isSafeInteger(change.size) || change.size < 0) {
    refuse(change.path, 'has a size that is none', 'size')
  }
}

/** Every field is what it must be, every path named once, and no file lies where another change needs a folder. */
function checkChanges(changes: ImportRequest['changes']): void {
  const all = new Set<string>()
  const present = new Set<string>()
  for (const change of changes) {
    checkFields(change)
    const key = Buffer.from(change.path).toString('latin1')
    if (all.has(key)) refuse(change.path, 'has two changes')
    all.add(key)
    if (!('deleted' in change)) present.add(key)
  }
  for (const key of present) {
    for (const folder of foldersOf(key)) {
      if (present.has(folder)) refuse(Buffer.from(folder, 'latin1'), 'is a file and a folder at once')
    }
  }
}

function refuse(path: Uint8Array, why: string, field = 'path'): never {
  const shown = Buffer.from(path).toString('utf8')
  throw new TuttiError('invalid_argument', `The path ${JSON.stringify(shown)} ${why}.`, {
    field: `changes.${field}`,
    path: shown,
  })
}
