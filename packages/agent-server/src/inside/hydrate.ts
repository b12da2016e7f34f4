import { appendFileSync, lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TuttiError } from '@tutti/core'
import {
  changedFile,
  changePath,
  isEmptyFolder,
  pathBytes,
  pathKey,
  type CapturedChange,
} from '@tutti/workspace'
import { packOf } from '../content-of.ts'
import type { CallStream } from '../link/call.ts'
import { applyChange } from './apply-change.ts'
import { diskFull } from './disk-full.ts'
import { startEarlyHashes, type EarlyHashes } from './early-hashes.ts'
import { createFreshFiles } from './fresh-files.ts'
import { runGit, type GitRun } from './git.ts'
import type { Gitlinks } from './submodule-files.ts'
import { receiveChanges, type HostChange } from './receive-changes.ts'
import { restoreRepository } from './repository/restore-repository.ts'

export interface HydrateParams {
  /** Or the tree of one. */
  readonly commit: string
  readonly head: string
  readonly branch: string
  /** So many packs come first: what the commit needs beyond the mounted objects, and what the state does. */
  readonly packs: number
  /** How many of them are the state's. */
  readonly statePacks: number
  /** Commit with the state of the agent's repository; absent when it is that of `head`. */
  readonly state?: string
  /** Where the history of the mounted objects ends early. */
  readonly shallow?: string
}

/** What a path of the workspace must be: `hash` where it is known. */
export interface ExpectedPath {
  readonly mode: string
  readonly hash?: string
  readonly ignored?: boolean
}

export interface WrittenWorkspace {
  readonly gitlinks: Gitlinks
  /** Everything that must be there, by path key. */
  readonly expected: ReadonlyMap<string, ExpectedPath>
  readonly earlyHashes: EarlyHashes
  /** Paths that changed after the commit. */
  readonly changed: readonly string[]
  /** Settled where there are submodules: then the workspace is not whole before. */
  readonly restored: Promise<RestoredRepository>
  readonly times: HydrateTimes
}

export interface RestoredRepository {
  /** Commits of the agent's HEAD and branches. */
  readonly tips: readonly string[]
  /** Submodules, as path keys, that could not be checked out again. */
  readonly withoutSubmodules: readonly string[]
  /** The recorded state of the agent's repository could not be made again. */
  readonly withoutRepository: boolean
  /** How long it took, in milliseconds. */
  readonly ms: number
}

/** How long each part took, in milliseconds: the checkout, and what came after the commit. */
export interface HydrateTimes {
  readonly clone: number
  readonly blobs: number
}

/** A checkout of a very large repository on a slow disk, in milliseconds; the time to get ready is over before as a rule. */
const gitLimitMs = 15 * 60_000

/** Turns off everything that would make a checked-out file differ from its blob. `!` where git accepts no false. */
const rawAttributes = '* -text !eol -ident -filter !working-tree-encoding -crlf\n'

/** What an agent's clone has unless the agent says otherwise; background gc would race with capture and clean-up. */
const cloneSettings = `[user]
\tname = Tutti Agent
\temail = agent@tutti.invalid
[gc]
\tauto = 0
[maintenance]
\tauto = false
[core]
\tautocrlf = false
`

/**
 * Makes the workspace from the commit, byte for byte, and applies the changes that came after it. The files are there when it returns; the
 * rest of the repository may take longer, beside whatever is done with them.
 */
export async function hydrateWorkspace(
  params: HydrateParams,
  call: CallStream,
  signal: AbortSignal,
  at: { workdir: string; sourceObjects: string; env: Readonly<Record<string, string>> },
): Promise<WrittenWorkspace> {
  const { workdir } = at
  const lap = startLaps()
  for (const field of ['commit', 'head', 'state'] as const) {
    if (/^[0-9a-f]{40,64}$/.test(params[field] ?? params.head)) continue
    throw new TuttiError('invalid_argument', `The ${field} to hydrate must be a full object id.`, { field })
  }
  const git = (args: readonly string[], input?: GitRun['input']) =>
    // With the way out that the sandbox has: submodules come from elsewhere.
    runGit(args, { cwd: workdir, signal, timeoutMs: gitLimitMs, env: at.env, ...(input && { input }) })
  // A second try in the same sandbox must not find the first one's files.
  for (const name of readdirSync(workdir, { encoding: 'buffer' })) {
    rmSync(Buffer.concat([Buffer.from(`${workdir}/`), name]), { recursive: true, force: true })
  }
  // Processes are what this costs: whatever git reads from a file is written as one.
  await git(['init', '-q', '--template=', `--initial-branch=${params.branch}`, '.'])
  const info = join(workdir, '.git', 'info')
  mkdirSync(info, { recursive: true })
  mkdirSync(join(workdir, '.git', 'objects', 'info'), { recursive: true })
  writeFileSync(join(workdir, '.git', 'objects', 'info', 'alternates'), `${at.sourceObjects}\n`)
  if (params.shallow !== undefined) writeFileSync(join(workdir, '.git', 'shallow'), params.shallow)
  writeFileSync(join(info, 'attributes'), rawAttributes)
  appendFileSync(join(workdir, '.git', 'config'), cloneSettings)
  const messages = call.messages[Symbol.asyncIterator]()
  // Into the clone's own objects: nobody else's sandbox has them.
  for (let pack = 0; pack < params.packs; pack += 1) await git(['index-pack', '--stdin'], packOf(messages))
  if (params.state === undefined) await git(['update-ref', `refs/heads/${params.branch}`, params.head])
  const checkout = git(['read-tree', '--reset', '-u', params.commit]).catch(async (failed: unknown) => {
    const unwritten = await unwrittenBytes(git, params.commit, workdir).catch(() => 0)
    throw diskFull(failed, workdir, unwritten) ?? failed
  })
  checkout.catch(() => {})
  const listing = git(['ls-tree', '-r', '-z', '--full-tree', params.commit]).catch(
    async (failed: unknown) => {
      await checkout.catch(() => {})
      throw failed
    },
  )
  const { gitlinks, expected } = entriesOf(await listing)
  const files = [...expected].flatMap(([key, { mode }]) => (isFileMode(mode) ? [key] : []))
  const earlyHashes = startEarlyHashes(workdir, files)
  await checkout.finally(earlyHashes.written)
  rmSync(join(info, 'attributes'))
  const clone = lap()
  const changed = await writeChanges(workdir, receiveChanges(messages), expected, earlyHashes)
  const blobs = lap()
  const restored = restoreGit(params, git, workdir, signal)
  restored.catch(() => {})
  // Their files are a part of the workspace.
  if (gitlinks.size > 0) await restored
  return { gitlinks, expected, earlyHashes, changed, restored, times: { clone, blobs } }
}

/** Writes what came after the commit, and says so in `expected`. @returns the path keys, in their order */
async function writeChanges(
  workdir: string,
  changes: AsyncIterable<HostChange>,
  expected: Map<string, ExpectedPath>,
  earlyHashes: EarlyHashes,
): Promise<string[]> {
  const changed: string[] = []
  const rewritten: string[] = []
  const emptyFolders = new Map<string, CapturedChange>()
  const fresh = createFreshFiles(workdir)
  for await (const { change, content } of changes) {
    const key = pathKey(changePath(change))
    changed.push(key)
    emptyFolders.delete(key)
    if (change.action === 'deleted') expected.delete(key)
    else expected.set(key, change.state)
    if (isEmptyFolder(change)) {
      emptyFolders.set(key, change)
      continue
    }
    const written = fresh.write({ change, content })
    const hash = changedFile(change)?.hash
    if (written && hash) {
      earlyHashes.know(key, written, hash)
      continue
    }
    await applyChange(workdir, change, content)
    fresh.forget(key)
    if (isFileMode(expected.get(key)?.mode)) rewritten.push(key)
  }
  // Last: what goes takes its empty parents along.
  for (const change of emptyFolders.values()) await applyChange(workdir, change, nothing)
  earlyHashes.add(rewritten)
  return changed
}

/** How much a checkout that failed has left out: whole files, and the rest of the one that it was at. */
async function unwrittenBytes(git: RunGit, commit: string, workdir: string): Promise<number> {
  let bytes = 0
  const listing = await git(['ls-tree', '-r', '-l', '-z', '--full-tree', commit])
  for (const line of pathKey(listing).split('\0')) {
    const [, size, key] = /^\d+ blob \S+ +(\d+)\t(.*)$/s.exec(line) ?? []
    if (key === undefined) continue
    const path = Buffer.concat([Buffer.from(`${workdir}/`), pathBytes(key)])
    bytes += Math.max(0, Number(size) - (lstatSync(path, { throwIfNoEntry: false })?.size ?? 0))
  }
  return bytes
}

const nothing = new Uint8Array()
const isFileMode = (mode: string | undefined): boolean => mode?.startsWith('100') === true

type RunGit = (args: readonly string[], input?: GitRun['input']) => Promise<Buffer>

/** HEAD, refs and index, as they were recorded. */
async function restoreGit(
  { head, commit, branch, state }: HydrateParams,
  git: RunGit,
  workdir: string,
  signal: AbortSignal,
): Promise<RestoredRepository> {
  const lap = startLaps()
  const asMade = { tips: [head], withoutSubmodules: [] }
  if (state === undefined) {
    // Merged, so that git need not look again at what is the same; in the index alone, whatever the files have become since the commit.
    if (head !== commit) await git(['read-tree', '-i', '-m', head])
    return { ...asMade, withoutRepository: false, ms: lap() }
  }
  try {
    const restored = await restoreRepository(git, workdir, state)
    return { ...restored, withoutRepository: false, ms: lap() }
  } catch (failed) {
    signal.throwIfAborted()
    // In a larger sandbox it can be made.
    if (diskFull(failed, workdir)) throw failed
    // The files must come back whatever the agent has made of its repository: it begins anew.
    for (const name of ['refs', 'packed-refs', 'index'])
      rmSync(join(workdir, '.git', name), { recursive: true, force: true })
    mkdirSync(join(workdir, '.git', 'refs'))
    writeFileSync(join(workdir, '.git', 'HEAD'), `ref: refs/heads/${branch}\n`)
    await git(['update-ref', `refs/heads/${branch}`, head])
    await git(['read-tree', head])
    return { ...asMade, withoutRepository: true, ms: lap() }
  }
}

/** Milliseconds since the call before. */
export function startLaps(): () => number {
  let since = performance.now()
  return () => {
    const from = since
    since = performance.now()
    return Math.round(since - from)
  }
}

/** Paths, as path keys, in which the workspace is not what its `head` is. */
export async function agentPaths(
  { head, commit }: Pick<HydrateParams, 'head' | 'commit'>,
  changed: readonly string[],
  at: { readonly workdir: string },
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  if (head === commit) return new Set(changed)
  const args = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', head, commit]
  const differing = await runGit(args, { cwd: at.workdir, signal, timeoutMs: gitLimitMs })
  return new Set([...pathKey(differing).split('\0').filter(Boolean), ...changed])
}

function entriesOf(listing: Buffer): { gitlinks: Gitlinks; expected: Map<string, ExpectedPath> } {
  const gitlinks = new Map<string, string>()
  const expected = new Map<string, ExpectedPath>()
  for (const line of pathKey(listing).split('\0')) {
    if (line === '') continue
    const tab = line.indexOf('\t')
    const [mode = '', , id = ''] = line.slice(0, tab).split(' ')
    const key = line.slice(tab + 1)
    if (mode === '160000') gitlinks.set(key, id)
    else expected.set(key, { mode })
  }
  return { gitlinks, expected }
}
