// For tests. Runs inside of a sandbox as the text of a program: edits the workspace, then says what it and its repository are.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'

/** Shell lines, or one step with paths and content as latin1. What the tree does not allow is left. */
export type InsideEdit =
  | { readonly kind: 'shell'; readonly line: string; readonly folder: string }
  | { readonly kind: 'write' | 'link'; readonly path: string; readonly content: string }
  | { readonly kind: 'remove' | 'chmod' | 'folder'; readonly path: string }
  | { readonly kind: 'move'; readonly path: string; readonly to: string }

/** What is at a path: `dir` with nothing or anything in it, `git` for a `.git` below the root; of files the executable bit and a hash, of links the target. */
export interface InsideEntry {
  readonly type: 'file' | 'symlink' | 'dir' | 'special' | 'unreadable' | 'unsafe' | 'git'
  readonly mode?: '755' | '644'
  readonly content?: string
}

export type GitQuestion = 'index' | 'status' | 'head' | 'refs' | 'stash' | 'progress'

export interface InsideReport {
  /** By path key. */
  readonly tree: Readonly<Record<string, InsideEntry>>
  /** Path keys of folders into which their owner cannot look. */
  readonly shut: readonly string[]
  /** What git answers, by question; latin1. `failed: ` and its exit code where it does not. */
  readonly git: Readonly<Record<GitQuestion, string>>
  /** Which of the edits changed anything, by their number from 0. */
  readonly effective: readonly number[]
}

/** Below `.git`: a merge, rebase or the like that is not over, and how the agent works. */
const inProgress = [
  'config',
  'info/exclude',
  'info/sparse-checkout',
  'hooks',
  'MERGE_HEAD',
  'MERGE_MSG',
  'MERGE_MODE',
  'CHERRY_PICK_HEAD',
  'REVERT_HEAD',
  'BISECT_LOG',
  'BISECT_START',
  'rebase-merge',
  'rebase-apply',
  'sequencer',
]

const { edits, inspect, seconds } = JSON.parse(process.argv[1]!) as {
  edits: readonly InsideEdit[]
  inspect: boolean
  seconds: number
}
const bytes = (key: string): Buffer => Buffer.from(key, 'latin1')
const gitEnv = (at: number) => ({
  ...process.env,
  GIT_EDITOR: 'true',
  GIT_AUTHOR_DATE: `${at} +0000`,
  GIT_COMMITTER_DATE: `${at} +0000`,
})

/** Contents that were read, so that a look at everything after each edit costs little; a report reads them all again. */
const known = new Map<string, string>()
const effective: number[] = []
let before = inspect && edits.length > 0 ? looks() : ''
for (const [index, edit] of edits.entries()) {
  try {
    perform(edit, seconds + index)
  } catch {
    // As far as the tree allows it.
  }
  if (!inspect) continue
  const after = looks()
  if (after !== before) effective.push(index)
  before = after
}
if (inspect) {
  known.clear()
  const report: InsideReport = { ...readFiles(), git: readGit(), effective }
  const text = Buffer.from(JSON.stringify(report))
  for (let at = 0; at < text.length;) at += writeSync(1, text, at)
}

function perform(edit: InsideEdit, at: number): void {
  if (edit.kind === 'shell') {
    mkdirSync(edit.folder, { recursive: true })
    const options = { cwd: edit.folder, env: gitEnv(at), timeout: 20_000, stdio: 'ignore' } as const
    spawnSync('/bin/sh', ['-c', edit.line], options)
    return
  }
  const path = bytes(edit.path)
  if (edit.kind === 'move') return renameSync(path, bytes(edit.to))
  if (edit.kind === 'chmod') return chmodSync(path, (lstatSync(path).mode & 0o777) ^ 0o111)
  rmSync(path, { recursive: true, force: true })
  if (!('content' in edit) && edit.kind !== 'folder') return
  const slash = path.lastIndexOf(47)
  if (slash > 0) mkdirSync(path.subarray(0, slash), { recursive: true })
  if (!('content' in edit)) mkdirSync(path)
  else if (edit.kind === 'link') symlinkSync(bytes(edit.content), path)
  else writeFileSync(path, bytes(edit.content))
}

/** The tree, and the repository but for its objects and reflogs. */
function looks(): string {
  const names = lstatSync('.git', { throwIfNoEntry: false })?.isDirectory() ? readdirSync('.git') : []
  const files = names
    .filter((name) => name !== 'objects' && name !== 'logs')
    .flatMap((name) => filesAt(`.git/${name}`).map((file) => [file, entryAt(file, file)]))
  return JSON.stringify([readFiles(), files])
}

function readFiles(): Pick<InsideReport, 'tree' | 'shut'> {
  const tree: Record<string, InsideEntry> = {}
  const shut: string[] = []
  const waiting = ['']
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    let names: Buffer[]
    try {
      names = readdirSync(folder === '' ? '.' : bytes(folder), { encoding: 'buffer' })
    } catch {
      tree[folder] = { type: 'unreadable' }
      continue
    }
    for (const name of names) {
      const key = folder === '' ? name.toString('latin1') : `${folder}/${name.toString('latin1')}`
      if (key === '.git') continue
      tree[key] = entryAt(key, name.toString('latin1'))
      if (tree[key].type !== 'dir') continue
      waiting.push(key)
      if ((lstatSync(bytes(key)).mode & 0o500) !== 0o500) shut.push(key)
    }
  }
  return { tree, shut }
}

function entryAt(key: string, name: string): InsideEntry {
  if (name === '.git') return { type: 'git' }
  if (/^(?:\.git|git~1)$/i.test(name)) return { type: 'unsafe' }
  try {
    const stats = lstatSync(bytes(key))
    if (stats.isDirectory()) return { type: 'dir' }
    if (stats.isSymbolicLink())
      return { type: 'symlink', content: readlinkSync(bytes(key), { encoding: 'buffer' }).toString('latin1') }
    if (!stats.isFile()) return { type: 'special' }
    const mode = (stats.mode & 0o100) === 0 ? '644' : '755'
    const state = `${stats.ino} ${stats.ctimeMs} ${stats.size}`
    const content = known.get(state) ?? hash(readFileSync(bytes(key)))
    known.set(state, content)
    return { type: 'file', mode, content }
  } catch {
    return { type: 'unreadable' }
  }
}

function hash(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

function readGit(): Record<GitQuestion, string> {
  const ask = (...args: string[]): string => {
    try {
      return execFileSync('git', ['--no-optional-locks', ...args], {
        maxBuffer: 1 << 28,
        timeout: 20_000,
        stdio: ['ignore', 'pipe', 'ignore'],
      }).toString('latin1')
    } catch (error) {
      return `failed: ${(error as { status?: number }).status}`
    }
  }
  const progress: Record<string, string> = {}
  for (const name of inProgress) {
    for (const file of filesAt(`.git/${name}`)) progress[file] = readFileSync(bytes(file)).toString('latin1')
  }
  return {
    index: ask('ls-files', '-s', '-v', '-z'),
    status: ask('status', '--porcelain=v2', '-z', '--untracked-files=all'),
    head: filesAt('.git/HEAD')
      .map((file) => readFileSync(file, 'latin1'))
      .join(''),
    refs: ask('for-each-ref', '--format=%(refname) %(objectname) %(symref)'),
    stash: ask('stash', 'list', '--format=%H %gs'),
    progress: JSON.stringify(progress),
  }
}

function filesAt(path: string): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats?.isDirectory()) return stats?.isFile() ? [path] : []
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath}/${entry.name}`)
}
