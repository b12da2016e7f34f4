import type { AgentHost } from '@tutti/agent'
import type { BlobId } from '@tutti/core'
import type { FileSkipReason } from '@tutti/protocol'
import type { CapturedChange, FileState } from '@tutti/workspace'

export type { CapturedChange, FileState }

export interface CaptureSink {
  /** Called once for each change, in path order. For a file or link, `content` are the bytes that were hashed. */
  change(change: CapturedChange, content: AsyncIterable<Uint8Array> | undefined): Promise<void>
  skipped(path: Uint8Array, reason: FileSkipReason, size: number | undefined): Promise<void>
}

export interface CaptureSummary {
  /** Hash over the sorted (path, type, mode, content hash) of the whole workspace without `.git`. */
  readonly manifestDigest: string
  readonly entries: number
  readonly changes: number
}

export interface HydrateRequest {
  /** Checked out raw: no filters, no attributes. */
  readonly commit: string
  /** What the branch and the index stand at, where that is not `commit`: what git shows as changed is what differs from it. */
  readonly head?: string
  /** A git pack with what the commit needs beyond the objects that are mounted; read to its end at most once. */
  readonly pack?: AsyncIterable<Uint8Array>
  /** Branch name that HEAD points to inside. */
  readonly branch: string
  /** Changes after that commit, applied on top; deletions first. */
  readonly changes: readonly CapturedChange[]
  readonly contentOf: (hash: BlobId) => AsyncIterable<Uint8Array>
}

/** The host's end of the link to the one program inside a sandbox (design §3). */
export interface AgentServer extends AgentHost {
  /** Writes the workspace and remembers it as the state that the next capture compares with. */
  hydrate(request: HydrateRequest, signal: AbortSignal): Promise<CaptureSummary>
  /** Reports every change since the last capture (or hydration). One at a time: calls queue up. */
  capture(sink: CaptureSink, signal: AbortSignal): Promise<CaptureSummary>
  /** What `toolEnded` does: the worker sets it to a capture into the store and the log. */
  onToolEnded(capture: (signal: AbortSignal) => Promise<void>): void
  /** Ends every process that the agent started, inside; the server lives on. */
  killProcesses(signal: AbortSignal): Promise<void>
  /** Resolves with a reason when the link breaks or the server dies; never rejects. */
  readonly lost: Promise<string>
  close(): Promise<void>
  /** For a server that does not answer: kills it, and with it an isolated sandbox. Every open call fails then. */
  kill(): Promise<void>
}
