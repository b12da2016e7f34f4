import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { checkBranch, checkRefName, mirrorRefs, TuttiError } from '@tutti/core'
import { checkPack } from './check-pack.ts'
import type { CommitArchive } from './commit-archive.ts'
import { combineAttempts } from './combine.ts'
import { importCommit } from './fast-import.ts'
import { diffTrees } from './tree-diff.ts'
import { withLockRepair } from './lock-repair.ts'
import type { Location } from './location.ts'
import type { MirrorStores } from './mirror-stores.ts'
import type { Mirror } from './port.ts'
import { pushCommit } from './push.ts'
import { checkHash, checkOwnRef, isHash, mayBeHash } from './ref-name.ts'
import type { GitRunner } from './run-git.ts'
import { packBeyondSource } from './source-pack.ts'
import { sourceRefs } from './source.ts'
import { treeFiles } from './tree-files.ts'

/** Trees of commits, commits of pinned refs, and what the source's store has: what never changes is asked once, as asking git costs a process each time. */
export interface KnownHashes {
  get(name: string): string | undefined
  set(name: string, hash: string): void
}

/** The operations on one mirror that is there. */
export function createMirror(
  git: GitRunner,
  { mirror: path, source }: MirrorStores,
  location: Location,
  known: KnownHashes,
  archive?: CommitArchive,
): Mirror {
  /** Full hash of what a revision names, or undefined; `revision` is built from checked parts only. */
  const lookUp = async (
    gitDir: string,
    revision: string,
    signal: AbortSignal,
  ): Promise<string | undefined> => {
    const answer = await git
      .text(gitDir, ['rev-parse', '--verify', '--quiet', '--end-of-options', revision], signal)
      .catch((error: unknown) => {
        // git explains what is ambiguous or of another type; to us there is no such commit then.
        if (
          error instanceof TuttiError &&
          error.cause instanceof Error &&
          /^(?:error|fatal): /m.test(error.cause.message)
        ) {
          return ''
        }
        throw error
      })
    return isHash(answer) ? answer : undefined
  }
  /** A commit of the source's store. It never leaves it again, so that a yes is kept; a no may change with the next fetch. */
  const sourceCommit = async (revision: string, signal: AbortSignal): Promise<string | undefined> => {
    if (known.get(inSource(revision))) return revision
    const commit = await lookUp(source, `${revision}^{commit}`, signal)
    if (commit !== undefined) known.set(inSource(commit), commit)
    return commit
  }

  const mirror: Mirror = {
    path,
    sourceObjects: join(source, 'objects'),

    async shallow() {
      const text = await readFile(join(source, 'shallow'), 'utf8').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return ''
        throw error
      })
      return text || undefined
    },

    async resolve(ref, signal) {
      const name = ref === '' || ref === 'HEAD' ? '' : checkRefName(ref, 'ref')
      for (const revision of candidates(name)) {
        const commit = await sourceCommit(revision, signal)
        if (commit !== undefined) return commit
      }
      const shown = name === '' ? 'the default branch' : `"${name}"`
      throw new TuttiError(
        'not_found',
        `The repository has no commit at ${shown}; name a branch, a tag or a hash.`,
        { ref },
      )
    },

    async readRef(ref, signal) {
      const there = known.get(ref)
      if (there) return there
      const commit = await lookUp(path, `${checkOwnRef(ref)}^{commit}`, signal)
      if (commit && mirrorRefs.isPinned(ref)) known.set(ref, commit)
      return commit
    },

    async updateRef(ref, commit, signal) {
      const args = ['update-ref', '--no-deref', checkOwnRef(ref), checkHash(commit, 'commit')]
      await withLockRepair(path, signal, () => git.text(path, args, signal))
    },

    async packBeyondSource(request, signal) {
      const commit = checkHash(request.commit, 'commit')
      const base = await sourceCommit(checkHash(request.base, 'base'), signal)
      if (commit === base) return undefined
      // Who lacks the base as well gets it with its history.
      const part = request.filesOnly && base !== undefined ? '^{tree}' : ''
      return packBeyondSource(git, path, `${commit}${part}`, base && `${base}${part}`, signal)
    },

    checkPack: (pack, onto, signal) =>
      checkPack(git, path, pack, { sourceObjects: join(source, 'objects'), onto }, signal),

    async treeOf(commit, signal) {
      const there = known.get(checkHash(commit, 'commit'))
      if (there) return there
      const tree = await lookUp(path, `${commit}^{tree}`, signal)
      if (tree === undefined)
        throw new TuttiError('not_found', `The mirror has no commit ${commit}.`, { commit })
      known.set(commit, tree)
      return tree
    },

    files: (commit, signal, only) => treeFiles(git, path, commit, signal, only),

    async differences(from, to, signal) {
      const trees = await Promise.all([mirror.treeOf(from, signal), mirror.treeOf(to, signal)])
      const [differing = []] = await diffTrees(git, path, trees[0], [trees[1]], signal)
      return differing.map((entry) => ({ path: entry.path, wasThere: entry.before !== undefined }))
    },

    async countChanges(from, to, signal) {
      const output = await git.run(
        [
          'diff-tree',
          '-r',
          '-z',
          '--name-only',
          '--no-renames',
          '--end-of-options',
          checkHash(from, 'from'),
          checkHash(to, 'to'),
          '--',
        ],
        { gitDir: path, signal, maxBytes: 256 << 20 },
      )
      if (output.exitCode !== 0) throw lacking(from, to, output.stderr)
      let count = 0
      for (const byte of output.stdout) if (byte === 0) count += 1
      return count
    },

    async diff(from, to, maxBytes, signal) {
      const options = [
        '-r',
        '-p',
        '-M',
        '--binary',
        '--full-index',
        '--no-ext-diff',
        '--no-textconv',
        '--no-color',
        '--src-prefix=a/',
        '--dst-prefix=b/',
      ]
      const output = await git.run(
        ['diff-tree', ...options, '--end-of-options', checkHash(from, 'from'), checkHash(to, 'to'), '--'],
        { gitDir: path, signal, maxBytes, cut: true, config: ['core.quotePath=false'] },
      )
      if (output.exitCode !== 0) throw lacking(from, to, output.stderr)
      const { stdout, cut } = output
      return { patch: cut ? stdout.subarray(0, stdout.lastIndexOf('\n') + 1) : stdout, cut }
    },

    async commit(request, signal) {
      const ref = checkOwnRef(request.ref)
      const parent = checkHash(request.parent, 'parent')
      const parentTree = await mirror.treeOf(parent, signal)
      const { files = parent, changes } = request
      const tree = await mirror.treeOf(files, signal)
      const isOther = tree !== parentTree
      const made =
        changes.length > 0 || isOther
          ? await importCommit(git, path, { ...request, ref, ...(isOther && { tree }) }, signal)
          : { commit: parent, tree: parentTree }
      known.set(made.commit, made.tree)
      const commit = made.tree === parentTree ? parent : made.commit
      // What changes nothing is no commit of its own.
      if (commit === parent) await mirror.updateRef(ref, commit, signal)
      return { commit, tree: made.tree }
    },

    async combine(request, signal) {
      const ref = checkOwnRef(request.ref)
      checkHash(request.base, 'base')
      for (const { commit } of request.attempts) checkHash(commit, 'attempts.commit')
      const combined = await combineAttempts(
        git,
        path,
        request,
        (commit) => mirror.treeOf(commit, signal),
        signal,
      )
      known.set(combined.commit, combined.tree)
      await mirror.updateRef(ref, combined.commit, signal)
      return combined
    },

    async keepBase(base, signal) {
      await archive?.keepBase(source, checkHash(base, 'base'), signal)
    },

    async isKept(commit, signal) {
      return (await archive?.isKept(checkHash(commit, 'commit'), signal)) ?? false
    },

    async keep(request, signal) {
      for (const field of ['commit', 'onto', 'base'] as const) checkHash(request[field], field)
      await archive?.keep(path, request, signal)
    },

    async push(request, signal) {
      checkBranch(request.branch)
      checkHash(request.commit, 'commit')
      if (request.expected !== undefined) checkHash(request.expected, 'expected')
      return await pushCommit(git, path, location, request, signal)
    },
  }
  return mirror
}

const inSource = (commit: string): string => `source/${commit}`

/** What a person may mean by a name, in order: branch, tag, full ref of the source, hash. */
function candidates(name: string): readonly string[] {
  if (name === '') return [`${sourceRefs}/HEAD`]
  return [
    `${sourceRefs}/heads/${name}`,
    `${sourceRefs}/tags/${name}`,
    ...(/^refs\/(?:heads|tags)\//.test(name) ? [`${sourceRefs}/${name.slice('refs/'.length)}`] : []),
    ...(mayBeHash(name) ? [name] : []),
  ]
}

const lacking = (from: string, to: string, stderr: string) =>
  new TuttiError('not_found', 'The mirror lacks one of the two commits.', { from, to }, new Error(stderr))
