import type {
  AgentId,
  AgentStatus,
  BlobId,
  CheckResult,
  DeliveryFailure,
  EnsemblePhase,
  Interruption,
  Reason,
} from '@tutti/core'

/**
 * What happens in the life of an agent or an ensemble: the one canonical union (design §7). Each view of the wire is made from
 * it by a pure codec. Names follow the seeds: 000 for interaction updates, 003 for the JSON-RPC methods.
 */
export type RunEvent =
  | SessionEvent
  | TurnEvent
  | InteractionEvent
  | WorkspaceEvent
  | CommandEvent
  | EnsembleEvent

export type RunEventType = RunEvent['type']

/** `session_start` and `session_close` bracket an agent's life; each incarnation and checkpoint has its own event (design §11.17). */
export type SessionEvent =
  | { type: 'session_start'; repository: string; ref: string; agent: string }
  | { type: 'session_close'; reason: Reason }
  | {
      type: 'status'
      status: AgentStatus
      paused: boolean
      reason?: Reason
      /** Waiting turns. */
      queued: number
      /** The agent has had a sandbox: before it, clients of the seeds see CREATING. */
      hadSandbox: boolean
    }
  | {
      type: 'sandbox'
      incarnation: number
      state: 'waiting' | 'creating' | 'setup' | 'hydrating' | 'ready' | 'lost' | 'destroyed'
      /** Place in the host's queue, 1 is next; only while waiting. */
      position?: number
      /** The commit that the workspace starts from; only when ready. */
      commit?: string
      /** Of the workspace before setup; only when ready, and when it is all there. */
      manifestDigest?: string
      /** When its provider ends it, in milliseconds since the epoch, if it does; only when ready. */
      expiresAt?: number
      /** Why its work goes on in another one; only at its end. */
      reason?: Interruption
      detail?: string
    }
  | { type: 'state_saved'; blobId: BlobId }
  /** What the agent's program exported of its own session, so that a later sandbox can go on (design §4). */
  | { type: 'session_saved'; blobId: BlobId }

export type TurnEvent =
  | { type: 'user_message'; turnId: string; text?: string; blobId?: BlobId; source: string }
  | { type: 'turn_started'; turnId: string; turn: number; incarnation: number; agent: string; brain?: string }
  | { type: 'turn_interrupted'; turnId: string; incarnation: number; restart: number; reason?: Interruption }
  | { type: 'turn_ended'; turnId: string; reason: Reason; detail?: string }
  | ({ type: 'agent_question' } & OpenQuestion)
  | { type: 'check'; command: string; commit: string; result: CheckResult }

/** What an agent asks while its turn waits. */
export interface OpenQuestion {
  questionId: string
  text: string
  /** Answers to choose from; absent: free text. */
  options?: string[]
  /** What `--on-question default` answers; absent: the first option. */
  default?: string
}

/** Seed 000 §2, field for field; `agent.v1.InteractionUpdate`. Deltas are joined before they are numbered. */
export type InteractionEvent =
  | { type: 'text_delta'; text: string }
  | { type: 'thinking_delta'; text: string }
  | { type: 'thinking_completed'; durationMs: number }
  | {
      type: 'partial_tool_call'
      callId: string
      toolName: string
      argsTextDelta: string
      modelCallId?: string
    }
  | { type: 'tool_call_started'; callId: string; toolName: string; args: unknown; modelCallId?: string }
  | { type: 'tool_call_delta'; callId: string; delta: unknown; modelCallId?: string }
  | {
      type: 'tool_call_completed'
      callId: string
      toolName: string
      /** `interrupted`: cut off by a lost sandbox; `cancelled`: by a stop. */
      outcome: 'ok' | 'error' | 'cancelled' | 'interrupted'
      result?: unknown
      modelCallId?: string
    }
  | { type: 'shell_output_delta'; callId: string; event: ShellOutput }
  | { type: 'token_delta'; tokens: number }
  | { type: 'summary_started' }
  | { type: 'summary'; summary: string }
  | { type: 'summary_completed' }
  | { type: 'step_started'; stepId: number }
  | { type: 'step_completed'; stepId: number; durationMs: number }

export type ShellOutput =
  | { case: 'start'; command: string }
  | { case: 'stdout' | 'stderr'; data: string }
  /** Output beyond head and tail: `bytes` were left out here; all of it is in the blob. */
  | { case: 'truncated'; bytes: number; blobId?: BlobId }
  | { case: 'exit'; code: number | null; signal?: string }

/** State-based: applying one twice is applying it once (design §11.3). */
export type WorkspaceEvent =
  | ({ type: 'file_change'; incarnation: number } & ChangedPath)
  /**
   * A path as the user has it (seed 003). It is so in the workspace from here on, whatever a sandbox says that has not got it yet: an `ack`
   * says that it has. What it replaces stays in the log and the store.
   */
  | ({ type: 'file_sync'; commandId: string } & ChangedPath)
  /**
   * This sandbox cannot have what that `file_sync` brought, and works on with its own version. It is tried again with what the user changes
   * next, before each turn and in the next sandbox; told once for each `code`.
   */
  | {
      type: 'file_sync_failed'
      incarnation: number
      commandId: string
      path: string
      /** As of a `file_change`. */
      pathB64?: string
      /** Of the file system's error, such as `ENOSPC`; `lost`: the store has not got the content any more. */
      code: string
      /** What to do about it. */
      detail: string
    }
  | {
      type: 'file_skipped'
      incarnation: number
      path: string
      /** As of a `file_change`. */
      pathB64?: string
      reason: FileSkipReason
      size?: number
    }
  /** Ends what one capture found: `manifestDigest` is that of the whole workspace with every `file_change` up to here. */
  | { type: 'workspace_captured'; incarnation: number; manifestDigest: string; entries: number }
  | {
      type: 'checkpoint'
      incarnation: number
      turnId: string
      commit: string
      tree: string
      filesChanged: number
      manifestDigest: string
      /** The archive has everything that the commit needs. Without it the base was still on its way there. */
      kept?: true
    }
  | { type: 'git_commit'; sha: string; message: string }
  /** The agent's own repository as it is now: HEAD, refs, stash, index, and a merge or rebase in progress. */
  | {
      type: 'git_state'
      incarnation: number
      /** Holds all of it; PROTOCOL.md says how. */
      commit: string
      /** A git pack with the objects of `commit` that neither the source nor the packs of `onto` have. */
      pack: BlobId
      /** An earlier state's `commit`; absent when the pack needs only the source. */
      onto?: string
      /** Commit of HEAD; absent before the first. */
      head?: string
      /** Full name of the ref that HEAD is; absent when it is detached. */
      branch?: string
    }
  | RecoveryEvent
  /**
   * The workspace is again what it was at `atOffset`, as somebody asked. What differs follows as a capture with its checkpoint: while that
   * is not in the log, the next sandbox does all of it again. The agent's repository is that of the `git_state` behind this, or as it was
   * made when there is none.
   */
  | { type: 'workspace_restored'; incarnation: number; requestId: string; atOffset: string }
  /** A recovery that was asked for did not come about; the workspace is as the log has it. */
  | { type: 'recovery_failed'; requestId: string; reason: Reason; detail?: string }

/** What a path has become. */
export interface ChangedPath {
  path: string
  /** The raw bytes, when the path is not valid UTF-8; `path` is then for display. */
  pathB64?: string
  action: 'created' | 'modified' | 'deleted'
  /** `dir`: an empty folder, without hash and size. */
  fileType?: 'file' | 'symlink' | 'dir'
  mode?: '100644' | '100755' | '120000' | '040000'
  hash?: BlobId
  size?: number
  /**
   * git ignores it, or it is in a submodule: it is in no checkpoint, diff or pull request, and comes back after a loss. Of what is `deleted`: git
   * ignores it by now and the setting `workspace.ignored` leaves it out, so that it is not kept any more; in the sandbox it may well be.
   */
  ignored?: true
  /** The hash that this change was made on; absent when created. */
  base?: BlobId
}

export type FileSkipReason =
  | 'too_large'
  | 'special'
  | 'unsafe_name'
  | 'unreadable'
  | 'limit'
  /** git ignores it, and the setting `workspace.ignored` leaves it out. */
  | 'ignored'
  /** A submodule that could not be checked out again; what was changed in it is there. */
  | 'submodule'
  /** The `.git` of a repository below the workspace: the files beside it are captured, its history is not. */
  | 'repository'
  /** The agent is EXPIRED, and no commit has it. */
  | 'expired'
  /** git finds an object of the agent's unsafe. */
  | 'unsafe_object'

/** A new sandbox has the workspace of the one before it. */
export interface RecoveryEvent {
  type: 'recovery'
  /** The new one. */
  incarnation: number
  /**
   * `lost`: the one before it ended by itself or with its worker; `released`: it was given up in good order; `requested`: somebody
   * asked for it; `expires`: its end was near.
   */
  reason: 'lost' | 'released' | 'requested' | 'expires'
  /** Of the request that asked for it. */
  requestId?: string
  /** The workspace is that of this offset, as was asked for. */
  atOffset?: string
  /** The checkpoint that the files come from. */
  commit: string
  /** Checkpoints after it that could not be had whole, in the order in which they were tried; at most 100. What they had comes from the changes. */
  passedOver?: string[]
  /** Paths that had changed after it and were written over it. */
  replayed: number
  /** `rebuilt`: of the agent's index nothing usable was known, and it is that of HEAD. */
  index: 'restored' | 'rebuilt'
  manifestDigest: string
  /** When the newest of it was captured, in milliseconds since the epoch: what a lost sandbox wrote after that is not there. */
  capturedAt?: number
  /** The digest is the one that the log recorded; false when the last capture before the loss had not come to its end. */
  proven: boolean
  /** What of the workspace is not there, at most 100 of it. */
  missing: { path: string; pathB64?: string; reason: FileSkipReason }[]
  /** How many there are beyond those. */
  moreMissing?: number
  /** How long each step took, in their order, in milliseconds; of the boot that came to its end. */
  steps?: { name: RecoveryStep; ms: number }[]
}

/**
 * `fold`: the log is read; `sandbox`: it is made and its agent server answers; `clone`: commits are handed over and checked out;
 * `blobs`: what changed after the checkpoint is handed over and written; `restore`: HEAD, refs and index are made again; `scan`:
 * every path is read and hashed; `setup`: the setup command; `put_back`: an earlier workspace becomes the newest one.
 */
export type RecoveryStep = 'fold' | 'sandbox' | 'clone' | 'blobs' | 'restore' | 'scan' | 'setup' | 'put_back'

/** Commands that must be immediate; `runTurn` reads them from the log and acknowledges each (design §3). */
export type CommandEvent =
  | {
      type: 'cancel'
      commandId: string
      turnId?: string
      /** `recovering`: the turn is not over, and goes on in another sandbox. */
      reason: 'stopped_by_user' | 'interrupted' | 'paused' | 'archived' | 'expired' | 'recovering'
      /** For `recovering`: the sandbox that is meant; a later one takes no notice. */
      incarnation?: number
    }
  | { type: 'answer'; commandId: string; questionId: string; text: string }
  | { type: 'ack'; commandId: string }

export type EnsembleEvent =
  | { type: 'phase'; phase: EnsemblePhase; reason?: Reason; detail?: string }
  | { type: 'child'; child: ChildView }
  | { type: 'combined'; commit: string; included: AgentId[]; leftOut: AgentId[]; conflicts: number }
  | { type: 'verified'; commit: string; result: CheckResult }
  | DeliveryEvent

/** How a request to deliver ended; `requestId` is the one of the request, so that whoever asked finds the answer. */
export type DeliveryEvent = { type: 'delivery'; requestId: string } & (
  | { outcome: 'delivered'; branch: string; commit: string; pullRequest?: { url: string; number: number } }
  | { outcome: 'nothing_to_deliver' }
  | { outcome: 'failed'; failure: DeliveryFailure; detail: string }
)

/** One child as the ensemble's stream shows it. */
export interface ChildView {
  bcId: AgentId
  index: number
  agent: string
  status: AgentStatus
  /** The child has had a sandbox: before it, clients of the seeds see CREATING (design §4). */
  hadSandbox: boolean
  reason?: Reason
  /** Place among the agents that wait for a sandbox, from 1; absent when it does not wait. */
  queuePosition?: number
  commit?: string
  filesChanged?: number
  checkExitCode?: number | null
  summary?: string
  /** Set while it waits for an answer. */
  question?: OpenQuestion
}
