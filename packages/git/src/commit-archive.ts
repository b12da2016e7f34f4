import type { Archive } from '@tutti/blob-store'
import { LRUCache } from 'lru-cache'
import { basePack, packOnto, packsOf } from './pack-names.ts'
import { restoreCommit } from './restore-commit.ts'
import type { MirrorStores } from './mirror-stores.ts'
import type { GitRunner } from './run-git.ts'

/** Commits in the archive, as packs from which any host makes its mirror again (decision 0082). */
export interface CommitArchive {
  /** Whether the archive has everything that the commit needs. Asks the archive once: what is kept is kept for ever. */
  isKept(commit: string, signal: AbortSignal): Promise<boolean>
  /** Stores a commit of the source with its tree, without its history; once, whoever asks. `gitDir` has it. */
  keepBase(gitDir: string, base: string, signal: AbortSignal): Promise<void>
  /** Stores what a commit of ours adds; see {@link KeepRequest}. */
  keep(gitDir: string, request: KeepRequest, signal: AbortSignal): Promise<void>
  /** Brings a commit that the mirror lacks back, with all that it needs. Call it with the mirror's lock held. @throws TuttiError `data_loss` when the archive does not have it whole. */
  restore(stores: MirrorStores, commit: string, signal: AbortSignal): Promise<void>
  /** Brings all of it back, down to `base`, as what the mirror has of it is damaged. As {@link CommitArchive.restore}. */
  replace(
    stores: MirrorStores,
    request: { readonly commit: string; readonly base: string },
    signal: AbortSignal,
  ): Promise<void>
}

export interface KeepRequest {
  readonly commit: string
  /** An ancestor that was kept before: the pack has what the commit adds to it. */
  readonly onto: string
  /** The commit of the source that both began from. */
  readonly base: string
}

/** Packs between a commit and its base: a restore reads no more than these, and each is small. */
const maxChain = 32
/** A base of gigabytes goes at the pace of the store, in milliseconds. */
const transferTimeoutMs = 6 * 60 * 60_000
const keptInMind = 10_000

export function createCommitArchive(git: GitRunner, archive: Archive): CommitArchive {
  /** Of kept commits: so many packs lead from it to its base. */
  const chains = new LRUCache<string, number>({ max: keptInMind })

  const pack = (gitDir: string, revisions: readonly string[], signal: AbortSignal) =>
    git.stream(['pack-objects', '--revs', '--stdout', '--quiet', '--threads=1', '--window-memory=32m'], {
      gitDir,
      signal,
      input: Buffer.from(`${revisions.join('\n')}\n`),
      timeoutMs: transferTimeoutMs,
    })

  const isKept = async (commit: string, signal: AbortSignal): Promise<boolean> => {
    if (chains.has(commit)) return true
    for await (const _ of archive.list(packsOf(commit), signal)) {
      // Of a chain that others made the length is not known: the next pack begins a new one.
      chains.set(commit, maxChain)
      return true
    }
    return false
  }

  return {
    isKept,

    async keepBase(gitDir, base, signal) {
      if (await isKept(base, signal)) return
      // Cut off at the commit: its history is in no checkpoint's tree, and may be large.
      await archive.put(basePack(base), pack(gitDir, [`--shallow ${base}`, base], signal), signal)
      chains.set(base, 0)
    },

    async keep(gitDir, { commit, onto, base }, signal) {
      if (commit === base || (await isKept(commit, signal))) return
      const before = onto !== base && (await isKept(onto, signal)) ? (chains.get(onto) ?? maxChain) : maxChain
      const from = before < maxChain ? onto : base
      await archive.put(packOnto(commit, from), pack(gitDir, [commit, `^${from}`], signal), signal)
      chains.set(commit, from === base ? 1 : before + 1)
    },

    restore: (stores, commit, signal) => restoreCommit(git, archive, stores, commit, signal),
    replace: (stores, { commit, base }, signal) => restoreCommit(git, archive, stores, commit, signal, base),
  }
}
