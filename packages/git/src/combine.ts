import { belowAny, foldersOf, TuttiError, visibleText } from '@tutti/core'
import { importCommit, type ImportRequest, type MadeCommit } from './fast-import.ts'
import { identityEnvironment } from './hardened.ts'
import {
  createBlobs,
  mergePath,
  show,
  type Blobs,
  type PathMerge,
  type PathResult,
  type PathVersion,
} from './path-merge.ts'
import type { Combined, CombineRequest, Conflict } from './port.ts'
import type { GitRunner } from './run-git.ts'
import { diffTrees, type TreeDifference, type TreeEntry } from './tree-diff.ts'

/**
 * Joins attempts into one commit with the base as its only parent; the rules stand in decision 0031. No ref is moved.
 *
 * Attempts that touch no path together are simply all applied. Else they are folded with `git merge-tree`, which follows renames; if
 * that is clean, it is the result. If not, all of them are merged path by path against the base, where each conflicting place keeps
 * the base and is listed.
 */
export async function combineAttempts(
  git: GitRunner,
  gitDir: string,
  request: CombineRequest,
  treeOf: (commit: string) => Promise<string>,
  signal: AbortSignal,
): Promise<Combined> {
  const context: Context = { git, gitDir, signal, request, message: withTrailers(request) }
  const baseTree = await treeOf(request.base)
  const trees = await Promise.all(request.attempts.map(({ commit }) => treeOf(commit)))
  const distinct = [...new Set(trees)].filter((tree) => tree !== baseTree)
  if (distinct.length === 0) return { commit: request.base, tree: baseTree, conflicts: [] }
  const differences = await diffTrees(git, gitDir, baseTree, distinct, signal)
  const apart = joinApart(differences)
  if (apart) return { ...(await commitChanges(context, apart)), conflicts: [] }
  const folded = await foldTrees(context, distinct)
  if (folded === baseTree) return { commit: request.base, tree: baseTree, conflicts: [] }
  if (folded !== undefined) {
    return { commit: await commitTree(context, folded, context.message), tree: folded, conflicts: [] }
  }
  const { changes, conflicts } = await mergePaths(
    context,
    trees.map((tree) => differences[distinct.indexOf(tree)] ?? []),
  )
  const made = await commitChanges(context, changes)
  return { ...made, ...(made.tree === baseTree && { commit: request.base }), conflicts }
}

const commitChanges = (
  { git, gitDir, request, message, signal }: Context,
  changes: ImportRequest['changes'],
): Promise<MadeCommit> =>
  importCommit(git, gitDir, { parent: request.base, changes, message, atMs: request.atMs }, signal)

/** All changes together; undefined when two of them meet at one path, or one needs a folder where another has a file. */
function joinApart(
  differences: readonly (readonly TreeDifference[])[],
): ImportRequest['changes'] | undefined {
  const all = differences.flat()
  const paths = new Set(all.map(({ path }) => path.toString('latin1')))
  if (paths.size < all.length) return undefined
  const present = new Set(all.flatMap(({ path, after }) => (after ? [path.toString('latin1')] : [])))
  if ([...present].some(belowAny(present))) return undefined
  return all.map(({ path, after }) => (after ? { path, ...after } : { path, deleted: true }))
}

interface Context {
  readonly git: GitRunner
  readonly gitDir: string
  readonly signal: AbortSignal
  readonly request: CombineRequest
  readonly message: string
}

/** The attempts stand in the message: one line each, in the form of git's trailers. */
function withTrailers({ message, attempts }: CombineRequest): string {
  const trailers = attempts.map(({ bcId }) => `Tutti-Attempt: ${bcId}`)
  return `${message.trimEnd()}\n\n${trailers.join('\n')}\n`
}

/** Folds the trees one after another; undefined as soon as one does not fit cleanly. */
async function foldTrees(context: Context, trees: readonly string[]): Promise<string | undefined> {
  let [folded = ''] = trees
  for (const tree of trees.slice(1)) {
    // Commits with the base as parent make it the merge base whatever the attempts' own history is, with any git ≥ 2.38.
    const [ours, theirs] = await Promise.all([
      commitTree(context, folded, 'fold'),
      commitTree(context, tree, 'fold'),
    ])
    const output = await context.git.run(
      ['merge-tree', '--write-tree', '--no-messages', '-z', ours, theirs],
      {
        gitDir: context.gitDir,
        signal: context.signal,
      },
    )
    if (output.exitCode === 1) return undefined
    if (output.exitCode !== 0) {
      const hint = 'git merge-tree failed; Tutti needs git 2.38 or newer.'
      throw new TuttiError('internal', hint, {}, new Error(output.stderr))
    }
    folded = output.stdout.toString('latin1').replace(/\0.*$/s, '').trim()
  }
  return folded
}

async function commitTree(
  { git, gitDir, signal, request }: Context,
  tree: string,
  message: string,
): Promise<string> {
  const output = await git.bytes(['commit-tree', '-p', request.base, tree], {
    gitDir,
    signal,
    input: Buffer.from(message),
    env: identityEnvironment(request.atMs),
  })
  return output.toString('latin1').trim()
}

interface TouchedPath {
  readonly path: Buffer
  readonly base: TreeEntry | undefined
  readonly versions: PathVersion[]
}

async function mergePaths(
  context: Context,
  differences: readonly (readonly TreeDifference[])[],
): Promise<{ readonly changes: ImportRequest['changes']; readonly conflicts: readonly Conflict[] }> {
  const touched = collectTouched(context, differences)
  const blobs = createBlobs(context.git, context.gitDir, context.signal)
  const merged = new Map<string, PathMerge>()
  const keys = [...touched.keys()].toSorted()
  for (const key of keys) {
    const { path, base, versions } = touched.get(key)!
    merged.set(key, await mergePath(nameOf(path), base, versions, blobs))
  }
  for (const folder of findCollisions(merged)) await keepBase(folder, touched, merged, blobs)
  const results = [...merged].flatMap(([key, { result }]) =>
    result ? [toChange(touched.get(key)!.path, result)] : [],
  )
  return { changes: results, conflicts: [...merged.values()].flatMap(({ conflicts }) => conflicts) }
}

/** @param differences of each attempt, in their order */
function collectTouched(
  { request }: Context,
  differences: readonly (readonly TreeDifference[])[],
): Map<string, TouchedPath> {
  const touched = new Map<string, TouchedPath>()
  for (const [index, { bcId }] of request.attempts.entries()) {
    for (const { path, before, after } of differences[index]!) {
      const key = path.toString('latin1')
      const known = touched.get(key) ?? { path, base: before, versions: [] }
      known.versions.push({ bcId, entry: after })
      touched.set(key, known)
    }
  }
  return touched
}

/** Paths that would be a file while something else lies below them. */
function findCollisions(merged: ReadonlyMap<string, PathMerge>): readonly string[] {
  const isThere = (key: string) => {
    const merge = merged.get(key)
    // Kept from the base: only where attempts disagreed, and then the base has it.
    return merge !== undefined && !(merge.result && 'deleted' in merge.result)
  }
  const collisions = new Set<string>()
  for (const key of merged.keys()) {
    if (!isThere(key)) continue
    for (const folder of foldersOf(key)) if (isThere(folder)) collisions.add(folder)
  }
  return [...collisions].toSorted()
}

/** A file in one attempt and a folder in another: the base stays, at that path and below it. */
async function keepBase(
  folder: string,
  touched: ReadonlyMap<string, TouchedPath>,
  merged: Map<string, PathMerge>,
  blobs: Blobs,
): Promise<void> {
  for (const key of touched.keys()) {
    if (key.startsWith(`${folder}/`)) merged.set(key, { result: undefined, conflicts: [] })
  }
  const { path, base, versions } = touched.get(folder)!
  const files = versions.filter(({ entry }) => entry !== undefined)
  const below = new Set(
    [...touched].flatMap(([key, { versions: own }]) =>
      key.startsWith(`${folder}/`) ? own.flatMap(({ bcId, entry }) => (entry ? [bcId] : [])) : [],
    ),
  )
  const conflict: Conflict = {
    path: nameOf(path),
    kind: 'type',
    line: 1,
    base: await show(base, blobs),
    versions: [
      ...(await Promise.all(
        files.map(async ({ bcId, entry }) => ({ bcId, text: await show(entry, blobs) })),
      )),
      ...[...below].map((bcId) => ({ bcId, text: '(a folder)' })),
    ],
  }
  merged.set(folder, { result: undefined, conflicts: [conflict] })
}

const nameOf = (path: Buffer): string => visibleText(path.toString('utf8'))

function toChange(path: Buffer, result: PathResult): ImportRequest['changes'][number] {
  if ('deleted' in result) return { path, deleted: true }
  if ('entry' in result) return { path, ...result.entry }
  return {
    path,
    mode: result.mode === '100755' ? '100755' : '100644',
    size: result.bytes.length,
    content: async function* () {
      yield result.bytes
    },
  }
}
