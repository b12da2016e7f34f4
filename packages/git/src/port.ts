import type { AgentId } from '@tutti/core'
import type { OpenPack } from './check-pack.ts'
import type { KeepRequest } from './commit-archive.ts'
import type { ContentMode } from './tree-mode.ts'

/** A change of one path, as a commit needs it. Contents are streamed into `git fast-import`. */
export type TreeChange =
  | {
      readonly path: Uint8Array
      readonly mode: ContentMode
      readonly size: number
      readonly content: () => AsyncIterable<Uint8Array>
    }
  | { readonly path: Uint8Array; readonly deleted: true }

/** A file or link of a commit. `content` is read to its end, or not at all, before the next one is asked for. */
export interface TreeFile {
  readonly path: Uint8Array
  readonly mode: ContentMode
  /** In bytes. */
  readonly size: number
  readonly content: AsyncIterable<Uint8Array>
}

export interface CommitRequest {
  readonly parent: string
  /** The commit whose files it begins with. Default: the parent. */
  readonly files?: string
  readonly changes: readonly TreeChange[]
  readonly ref: string
  readonly message: string
  /** Author and committer date, milliseconds; given, so that a repeat makes the same commit. */
  readonly atMs: number
}

/** One place where two attempts disagree. Lines count from 1 in the base; texts are cut at 4 KiB each. */
export interface Conflict {
  readonly path: string
  readonly kind: 'content' | 'binary' | 'modify_delete' | 'mode' | 'add_add' | 'type'
  readonly line: number
  readonly base: string
  readonly versions: readonly { readonly bcId: AgentId; readonly text: string }[]
}

export interface CombineRequest {
  readonly base: string
  /** Folded one after another onto the base, in this order. */
  readonly attempts: readonly { readonly bcId: AgentId; readonly commit: string }[]
  readonly ref: string
  readonly message: string
  readonly atMs: number
}

export interface Combined {
  readonly commit: string
  readonly tree: string
  /** Conflicting hunks keep the base; everything else is merged. No file has conflict markers. */
  readonly conflicts: readonly Conflict[]
}

export interface Diff {
  /** Bytes of many encodings: contents and names are as they are in the files. */
  readonly patch: Uint8Array
  /** The patch is longer than was asked for: these are its first whole lines, which `git apply` must not get. */
  readonly cut: boolean
}

export type PushResult =
  | { readonly outcome: 'pushed' | 'already_there' }
  /** `moved`: the branch has commits that we did not see; nothing was overwritten. */
  | {
      readonly outcome: 'refused'
      readonly why: 'auth' | 'protected_branch' | 'moved' | 'unavailable' | 'other'
      readonly message: string
    }

/** One bare repository that only Tutti writes (design §8), with the source's objects in a store of their own: hardened git, no hooks, no filters, no work tree. */
export interface Mirror {
  /** Absolute path of the bare repository. */
  readonly path: string
  /** Absolute path of an object folder with nothing but what came from the source: what every sandbox may read (decision 0073). */
  readonly sourceObjects: string
  /** Where the source's history ends early, as git has it in a file `shallow`; undefined when it is whole. */
  shallow(): Promise<string | undefined>
  /** Commit of a branch, tag or hash of the source; empty means the default branch. @throws TuttiError `not_found`, `invalid_argument`. */
  resolve(ref: string, signal: AbortSignal): Promise<string>
  /** Commit that one of our own refs points to, or undefined. */
  readRef(ref: string, signal: AbortSignal): Promise<string | undefined>
  updateRef(ref: string, commit: string, signal: AbortSignal): Promise<void>
  /**
   * What a reader of `sourceObjects` lacks to have `commit`, as a git pack; undefined when it has it. `base` is the commit of the
   * source that `commit` began from. With `filesOnly`, what it lacks to have its tree: however often a file has changed, it is there once.
   * git starts when the pack is read, and ends when the reading does.
   */
  packBeyondSource(
    request: { readonly commit: string; readonly base: string; readonly filesOnly?: boolean },
    signal: AbortSignal,
  ): Promise<AsyncIterable<Uint8Array> | undefined>
  /**
   * Reads a pack of an agent's to its end and looks at each object. None of them gets in.
   *
   * @param onto the packs that it builds on, which were checked before; read only when git needs something of them
   * @throws TuttiError `failed_precondition` with what git finds wrong.
   */
  checkPack(pack: OpenPack, onto: readonly OpenPack[], signal: AbortSignal): Promise<void>
  treeOf(commit: string, signal: AbortSignal): Promise<string>
  /**
   * Every file and link of a commit, raw, in the order of their paths; with `only`, those of these paths. @throws TuttiError `data_loss`
   * when the mirror lacks one.
   */
  files(commit: string, signal: AbortSignal, only?: (path: Uint8Array) => boolean): AsyncIterable<TreeFile>
  /** Paths that differ, and whether the first commit has them. */
  differences(
    from: string,
    to: string,
    signal: AbortSignal,
  ): Promise<readonly { readonly path: Uint8Array; readonly wasThere: boolean }[]>
  /** Number of paths that differ. */
  countChanges(from: string, to: string, signal: AbortSignal): Promise<number>
  /** The exact patch from one commit to the other, binary files included, as `git apply` takes it. */
  diff(from: string, to: string, maxBytes: number, signal: AbortSignal): Promise<Diff>
  /**
   * Builds the commit with `git fast-import` and moves `ref` to it. The same request gives the same commit; one that changes
   * nothing gives the parent itself.
   *
   * @throws TuttiError `invalid_argument` for an unsafe path, a mode or size that is none, or two changes that cannot both be;
   *   `data_loss` when a content is not as long as it said.
   */
  commit(
    request: CommitRequest,
    signal: AbortSignal,
  ): Promise<{ readonly commit: string; readonly tree: string }>
  /**
   * Joins the attempts into one commit with the base as its only parent (decision 0031); attempts that change nothing give the
   * base itself. The same request gives the same commit.
   */
  combine(request: CombineRequest, signal: AbortSignal): Promise<Combined>
  /**
   * Stores a commit of the source in the archive, with its tree and without its history; does nothing when it is there, whoever has
   * stored it. For a large repository it takes minutes: nothing should wait for it.
   */
  keepBase(base: string, signal: AbortSignal): Promise<void>
  /** Whether the archive has the commit, so that {@link Mirrors.restore} can bring it back. */
  isKept(commit: string, signal: AbortSignal): Promise<boolean>
  /** Stores in the archive what a commit of ours adds. It can be brought back once its base is there as well. */
  keep(request: KeepRequest, signal: AbortSignal): Promise<void>
  /** Pushes one commit to one branch of the source, with a lease on what the branch was; never a plain force, never the checked-out branch. Hooks of a local repository do not run (decision 0030). */
  push(
    request: { readonly commit: string; readonly branch: string; readonly expected?: string },
    signal: AbortSignal,
  ): Promise<PushResult>
}

/** All mirrors of one data folder. */
export interface Mirrors {
  /**
   * The mirror of a repository, made when it is not there and brought up to date with its source.
   * @param location absolute path of a registered local repository, or an https/ssh URL.
   * @throws TuttiError `invalid_argument` for a location that is not allowed; `unavailable` when the source cannot be read, `permission_denied`
   *   when it refuses the credentials.
   */
  open(location: string, signal: AbortSignal): Promise<Mirror>
  /** The mirror as it stands, without asking the source. @throws TuttiError `not_found`. */
  attach(location: string, signal: AbortSignal): Promise<Mirror>
  /**
   * The mirror with this commit, without asking the source: what is missing of the two comes from the archive.
   * @throws TuttiError `not_found` when the mirror lacks the commit and there is no archive, `data_loss` when the archive lacks it too.
   */
  restore(location: string, commit: string, signal: AbortSignal): Promise<Mirror>
  /**
   * Reads all that a commit of ours has beyond its base. What the mirror lacks of it, or has damaged, comes from the archive. What is damaged
   * goes to a folder `damaged` of the mirror. Takes its time: for when something is wrong.
   *
   * @returns whether anything had to be brought back
   * @throws TuttiError `data_loss` when it cannot be had whole, `unavailable` when the host or the archive let nobody find out.
   */
  repair(
    location: string,
    request: { readonly commit: string; readonly base: string },
    signal: AbortSignal,
  ): Promise<boolean>
  /** Forgets a repository that is gone for good: nobody may open it at the same time. Does nothing when there is no mirror. */
  remove(location: string, signal: AbortSignal): Promise<void>
  /**
   * Removes mirrors that nobody owns, and what killed processes left in the others. For the reaper; several may sweep at once.
   *
   * @param request.inUse locations that somebody needs; asked again while a mirror is locked, so that one that is opened meanwhile stays
   * @param request.unusedSince epoch milliseconds: a mirror that was opened later stays in any case
   * @returns paths of the mirrors that were removed.
   */
  sweep(
    request: { readonly inUse: () => Promise<readonly string[]>; readonly unusedSince: number },
    signal: AbortSignal,
  ): Promise<readonly string[]>
  /** Default branch of the source; `main` while it is empty. @throws TuttiError `failed_precondition` when its HEAD is detached and no branch stands out. */
  defaultBranch(location: string, signal: AbortSignal): Promise<string>
  /**
   * Whether {@link Mirror.resolve} may find this ref, without fetching anything: false when the source has no such branch or tag.
   * What could be a hash is true, as no source tells. @throws TuttiError as {@link Mirrors.open}.
   */
  mayHaveRef(location: string, ref: string, signal: AbortSignal): Promise<boolean>
}
