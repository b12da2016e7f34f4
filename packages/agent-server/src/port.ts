import type { AgentHost } from '@tutti/agent'
import type { BlobId } from '@tutti/core'
import type { FileSkipReason } from '@tutti/protocol'
import type { CapturedChange, FileState } from '@tutti/workspace'

export type { CapturedChange, FileState }

/** A commit of the agent's own. */
export interface GitCommit {
  readonly sha: string
  /** At most 1,000 characters of it. */
  readonly message: string
}

/** What of the agent's own repository (HEAD, refs, stash, index, a merge or rebase in progress) differs from what the host has. */
export interface GitStateReport {
  /** The commit that holds all of it; only the agent server reads it. */
  readonly commit: string
  /** The state whose packs must be there first; absent when this pack needs nothing but the source. */
  readonly onto?: string
  /** Commit of HEAD; absent before the first. */
  readonly head?: string
  /** Full name of the ref that HEAD is; absent when it is detached. */
  readonly branch?: string
  /** New on HEAD and the branches, oldest first. */
  readonly commits: readonly GitCommit[]
  /** Bytes of the pack. */
  readonly size: number
}

export interface CaptureSink {
  /** Content of a large file, in front of the change that it belongs to: its hash is known when it was read. Maybe no such change comes. */
  content(content: AsyncIterable<Uint8Array>): Promise<void>
  /**
   * Called once for each change, in path order. For a file or link, `content` are the bytes that were hashed; undefined when {@link content}
   * has had them.
   */
  change(change: CapturedChange, content: AsyncIterable<Uint8Array> | undefined): Promise<void>
  skipped(path: Uint8Array, reason: FileSkipReason, size: number | undefined): Promise<void>
  /** After the changes, at most once. `pack` is whole, but not checked; false refuses it, and the next one will not build on it. */
  gitState(report: GitStateReport, pack: AsyncIterable<Uint8Array>): Promise<boolean>
  /** A path of a sync that the sandbox's file system refuses, with the code of its error: it stays as it is. Only before the changes. */
  unwritten?(path: Uint8Array, code: string): void
  /** The capture is whole. What came before is kept only together with this. */
  committed(summary: CaptureSummary): Promise<void>
}

export interface CaptureSummary {
  /** Hash over the sorted (path, type, mode, content hash) of the whole workspace without `.git`. */
  readonly manifestDigest: string
  readonly entries: number
  readonly changes: number
}

export interface Hydrated extends CaptureSummary {
  /** Paths, at most 1,000, that are not as the commit and the changes say: the file system or the machine has failed. */
  readonly wrong: readonly Uint8Array[]
  /** Submodules that were checked out and could not be again; what was changed in them is there. */
  readonly withoutSubmodules: readonly Uint8Array[]
  /** The recorded state of the agent's repository could not be made again: it is as it was at the base commit. */
  readonly withoutRepository: boolean
  /** How long each part took inside, in milliseconds: see `RecoveryStep` in the protocol. */
  readonly times: Readonly<Record<'clone' | 'blobs' | 'restore' | 'scan', number>>
}

/** A state that a {@link GitStateReport} told of. */
export interface RecordedGitState {
  readonly commit: string
  /** Its packs, each after the one that it needs; each is read at most once. */
  readonly packs: readonly AsyncIterable<Uint8Array>[]
}

export interface HydrateRequest {
  /** Checked out raw: no filters, no attributes. The tree of one does where `head` is another one. */
  readonly commit: string
  /** What the branch and the index stand at, where that is not `commit`: what git shows as changed is what differs from it. */
  readonly head?: string
  /** A git pack with what the commit needs beyond the objects that are mounted; read to its end at most once. */
  readonly pack?: AsyncIterable<Uint8Array>
  /** Commits of the mounted objects behind which there is no history, in git's form of a file `shallow`. */
  readonly shallow?: string
  /** What the agent's own repository was. */
  readonly git?: RecordedGitState
  /** Branch name that HEAD points to inside. */
  readonly branch: string
  /** Changes after that commit, applied on top; deletions first. */
  readonly changes: readonly CapturedChange[]
  readonly contentOf: (hash: BlobId) => AsyncIterable<Uint8Array>
  /** Many small contents at once, in their order. Default: one by one. */
  readonly contentsOf?: (hashes: readonly BlobId[]) => Promise<readonly Uint8Array[]>
}

/** The host's end of the link to the one program inside a sandbox (design §3). */
export interface AgentServer extends AgentHost {
  /** Writes the workspace and remembers it as the state that the next capture compares with. */
  hydrate(request: HydrateRequest, signal: AbortSignal): Promise<Hydrated>
  /** Reports every change since the last capture (or hydration). One at a time: calls queue up. */
  capture(sink: CaptureSink, signal: AbortSignal): Promise<CaptureSummary>
  /**
   * Reports what has changed at paths of which hints told, where that can be known without a walk: never a deletion. The rest is left to the
   * next {@link capture}.
   */
  captureHinted(sink: CaptureSink, signal: AbortSignal): Promise<CaptureSummary>
  /** Calls `onHint` when there is something for {@link captureHinted}, until `signal` aborts; never where paths cannot be watched. */
  hints(onHint: () => void, signal: AbortSignal): void
  /** What the next {@link capture} would say, without taking anything. */
  look(signal: AbortSignal): Promise<CaptureSummary>
  /**
   * Makes paths what these changes say, whatever is there, and takes that for captured; then a capture, in the same turn, with what else is
   * different by it. A path that cannot be written holds up no other; the sink is told of it. When the whole fails, the next capture reports
   * as the agent's work what was written.
   */
  sync(
    request: Pick<HydrateRequest, 'changes' | 'contentOf' | 'contentsOf'>,
    sink: CaptureSink,
    signal: AbortSignal,
  ): Promise<CaptureSummary>
  /** Keeps what the hydrated workspace has beyond its `head` aside, until {@link absorb}: a setup command shall not undo it. */
  keepWork(signal: AbortSignal): Promise<void>
  /** Takes what has changed since for no work of the agent's: the next capture does not report it. What was kept aside is put back first. */
  absorb(signal: AbortSignal): Promise<void>
  /** What `toolEnded` does: the worker sets it to a capture into the store and the log. */
  onToolEnded(capture: (signal: AbortSignal) => Promise<void>): void
  /** Where `news` comes from: the worker knows. */
  onNews(take: () => string): void
  /** Whether anything that the agent started still runs. */
  hasProcesses(signal: AbortSignal): Promise<boolean>
  /** Ends every process that the agent started, inside; the server lives on. */
  killProcesses(signal: AbortSignal): Promise<void>
  /** Resolves when the server has answered: it is there, and does what it is asked to. */
  ping(signal: AbortSignal): Promise<void>
  /** Resolves with a reason when the link breaks or the server dies; never rejects. */
  readonly lost: Promise<string>
  close(): Promise<void>
  /** For a server that does not answer: kills it, and with it an isolated sandbox. Every open call fails then. */
  kill(): Promise<void>
}
