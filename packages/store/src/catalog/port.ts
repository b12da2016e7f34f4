import type {
  AgentId,
  AgentState,
  AgentStatus,
  Attempt,
  BlobId,
  EnsembleId,
  EnsemblePhase,
  LogId,
  Reason,
} from '@tutti/core'

/** A page of a list, newest first, ordered by id (ids sort by creation time). `nextPageToken` is empty on the last page. */
export interface Page<T> {
  readonly items: readonly T[]
  readonly nextPageToken: string
}

export interface PageRequest {
  readonly pageSize: number
  /** From the page before; empty for the first. @throws TuttiError `invalid_argument` when it is not one of ours. */
  readonly pageToken: string
}

/** One agent. Status fields are a projection of its log: written together with their offset, applied only when newer. */
export interface AgentRow {
  readonly bcId: AgentId
  readonly owner: string
  readonly ensembleId?: EnsembleId
  /** Place among the ensemble's children, from 0. */
  readonly childIndex?: number
  readonly title: string
  readonly repository: string
  readonly agentSpec: string
  readonly configBlobId: BlobId
  readonly createdAt: number
  readonly updatedAt: number
  /** `starting` until the workflow is known to have been started (design §3). */
  readonly starting: boolean
  readonly state: AgentState
  readonly hadSandbox: boolean
  readonly incarnation: number
  /** Turns that were accepted so far. */
  readonly turns: number
  readonly baseCommit?: string
  /** Newest checkpoint. */
  readonly commit?: string
  readonly filesChanged: number
  readonly branch?: string
  readonly prUrl?: string
  /** Position in the log that the state belongs to. */
  readonly logSequence: number
  /** The newest state that was saved; absent before the first. */
  readonly savedState?: SavedState
  readonly openQuestion?: StoredQuestion
}

/** What an agent waits to be told. Rows of older versions have neither options nor a default. */
export interface StoredQuestion {
  readonly questionId: string
  readonly text: string
  readonly options?: string[]
  readonly default?: string
}

/** `CloudAgentStatePersistedMetadata` (seed 000 §1): where an agent's `CloudAgentState` is, and what it stands for. */
export interface SavedState {
  readonly blobId: BlobId
  /** The position of the log that the state stands for. Offsets of one log sort in its order. */
  readonly offsetKey: string
  /** When the last event of it was stored, in milliseconds since the epoch. */
  readonly savedAt: number
  /** The status at that position. */
  readonly status: AgentStatus
  /** Format of the blob: 1. Whoever finds another one refuses it. */
  readonly version: number
}

export type NewAgent = Pick<
  AgentRow,
  | 'bcId'
  | 'owner'
  | 'ensembleId'
  | 'childIndex'
  | 'title'
  | 'repository'
  | 'agentSpec'
  | 'configBlobId'
  | 'createdAt'
  | 'state'
>

/** What `recordState` writes: any of the projected fields, with the log position that they belong to. */
export type AgentProjection = Partial<
  Pick<
    AgentRow,
    | 'state'
    | 'hadSandbox'
    | 'incarnation'
    | 'turns'
    | 'baseCommit'
    | 'commit'
    | 'filesChanged'
    | 'branch'
    | 'prUrl'
  >
> & { readonly logSequence: number; readonly openQuestion?: AgentRow['openQuestion'] | null }

export interface AgentCatalog {
  /** @throws TuttiError `already_exists` for a known id. */
  insert(agent: NewAgent, signal: AbortSignal): Promise<void>
  /** @throws TuttiError `not_found`, also for another owner's agent. */
  get(owner: string, bcId: AgentId, signal: AbortSignal): Promise<AgentRow>
  list(
    owner: string,
    filter: { readonly statuses?: readonly AgentStatus[]; readonly ensembleId?: EnsembleId },
    page: PageRequest,
    signal: AbortSignal,
  ): Promise<Page<AgentRow>>
  /**
   * Applies the projection if its `logSequence` is not older than the stored one; returns whether it did. Only one with a state moves the stored
   * one: what others know must not make a state look old that is written late.
   */
  project(bcId: AgentId, projection: AgentProjection, signal: AbortSignal): Promise<boolean>
  /**
   * Remembers a saved state if it stands for a later position than the stored one; returns whether it did. Apart from projections: it
   * is written while others project, and must not make theirs look old.
   */
  saveState(bcId: AgentId, saved: SavedState, signal: AbortSignal): Promise<boolean>
  markStarted(bcId: AgentId, signal: AbortSignal): Promise<void>
  /** For sweeps, across owners: still `starting` and created before the given time. */
  listStarting(createdBefore: number, signal: AbortSignal): Promise<readonly AgentRow[]>
  /** For sweeps, across owners: every agent, by id, after the given one. Empty at the end. */
  scan(after: string, limit: number, signal: AbortSignal): Promise<readonly AgentRow[]>
  /** For sweeps, across owners: at rest and not updated since the given time, except EXPIRED. */
  listInactive(updatedBefore: number, limit: number, signal: AbortSignal): Promise<readonly AgentRow[]>
}

export interface EnsembleRow {
  readonly ensembleId: EnsembleId
  readonly owner: string
  readonly title: string
  readonly repository: string
  readonly strategy: string
  readonly configBlobId: BlobId
  readonly childIds: readonly AgentId[]
  readonly createdAt: number
  readonly updatedAt: number
  readonly starting: boolean
  readonly phase: EnsemblePhase
  readonly reason?: Reason
  /** JSON blob with the result (attempts, synthesis, report, pull request); set at the end and at each phase. */
  readonly resultBlobId?: BlobId
  readonly logSequence: number
}

export type NewEnsemble = Pick<
  EnsembleRow,
  'ensembleId' | 'owner' | 'title' | 'repository' | 'strategy' | 'configBlobId' | 'childIds' | 'createdAt'
>

export interface EnsembleCatalog {
  /** The ensemble's row and its children's rows appear together. @throws TuttiError `already_exists`. */
  insert(ensemble: NewEnsemble, children: readonly NewAgent[], signal: AbortSignal): Promise<void>
  get(owner: string, ensembleId: EnsembleId, signal: AbortSignal): Promise<EnsembleRow>
  list(owner: string, page: PageRequest, signal: AbortSignal): Promise<Page<EnsembleRow>>
  project(
    ensembleId: EnsembleId,
    projection: Partial<Pick<EnsembleRow, 'phase' | 'reason' | 'resultBlobId'>> & {
      readonly logSequence: number
    },
    signal: AbortSignal,
  ): Promise<boolean>
  markStarted(ensembleId: EnsembleId, signal: AbortSignal): Promise<void>
  listStarting(createdBefore: number, signal: AbortSignal): Promise<readonly EnsembleRow[]>
}

export interface AttemptCatalog {
  /** One attempt per agent and ensemble; storing it again replaces it. */
  put(ensembleId: EnsembleId, attempt: Attempt, signal: AbortSignal): Promise<void>
  list(ensembleId: EnsembleId, signal: AbortSignal): Promise<readonly Attempt[]>
}

export interface PullRequestRow {
  /** Counts from 1 within a repository. */
  readonly number: number
  readonly repository: string
  readonly owner: string
  readonly url: string
  readonly title: string
  readonly body: string
  readonly head: string
  readonly headCommit: string
  readonly base: string
  readonly baseCommit: string
  readonly draft: boolean
  readonly state: 'open' | 'closed' | 'merged'
  /** The agent or ensemble that it came from. */
  readonly source: LogId
  readonly createdAt: number
  readonly updatedAt: number
}

export interface PullRequestCatalog {
  /** Gives the next number of the repository, or updates the open one with the same head and base. */
  upsert(
    pullRequest: Omit<PullRequestRow, 'number' | 'url'>,
    urlOf: (number: number) => string,
    signal: AbortSignal,
  ): Promise<PullRequestRow>
  findOpen(
    repository: string,
    head: string,
    base: string,
    signal: AbortSignal,
  ): Promise<PullRequestRow | undefined>
  get(owner: string, repository: string, number: number, signal: AbortSignal): Promise<PullRequestRow>
  list(owner: string, page: PageRequest, signal: AbortSignal): Promise<Page<PullRequestRow>>
}

export interface LeaseRow {
  readonly host: string
  /** `agent` slots are admitted by `sandboxes.max`; `verify` has one slot of its own. */
  readonly kind: 'agent' | 'verify'
  readonly holder: string
  /** Owner of the agent that holds it; empty for a verification. */
  readonly owner: string
  readonly waitingSince: number
  readonly grantedAt?: number
}

/** Slots for sandboxes: granted in order of arrival, never more than `slots` of a kind on a host (design §5). */
export interface LeaseCatalog {
  /** Puts the holder into the queue if it is not there, grants free slots in order, and tells where it stands (0: granted). */
  acquire(
    request: {
      readonly host: string
      readonly kind: LeaseRow['kind']
      readonly holder: string
      readonly slots: number
      readonly now: number
    },
    signal: AbortSignal,
  ): Promise<{ readonly position: number }>
  /** Gives the slot or the place in the queue back. Idempotent. */
  release(host: string, holder: string, signal: AbortSignal): Promise<void>
  list(host: string, signal: AbortSignal): Promise<readonly LeaseRow[]>
}

export interface IdempotencyCatalog {
  /**
   * The first call stores `answer` under the key; a repeat with the same `digest` of its request gets that first answer.
   * @throws TuttiError `already_exists` when the key was used with another request (detail `key`).
   */
  claim(
    owner: string,
    key: string,
    digest: string,
    answer: string,
    signal: AbortSignal,
  ): Promise<{ readonly answer: string; readonly repeated: boolean }>
}

/**
 * Who may read which blob, and how long it is kept. Whoever stores a blob says so here **before** the put: from then on no sweep
 * removes it, and one that is removing it at that moment is waited for.
 */
export interface BlobRefCatalog {
  /** The owner may read these blobs from now on, and they are kept for ever. @throws TuttiError `unavailable` when one is being removed and that does not end. */
  add(owner: string, blobs: readonly BlobId[], signal: AbortSignal): Promise<void>
  /** The owner may read these blobs from now on, and they are young again: kept for the retention, unless for ever. @throws TuttiError as {@link add}. */
  use(owner: string, blobs: readonly BlobId[], signal: AbortSignal): Promise<void>
  has(owner: string, blob: BlobId, signal: AbortSignal): Promise<boolean>
  /**
   * Begins the removal of those blobs that are not kept for ever and were not used since then, and returns them. Nobody can begin to
   * use one until {@link endRemoval}; when that does not come, the removal is another sweep's to end.
   */
  beginRemoval(blobs: readonly BlobId[], usedBefore: number, signal: AbortSignal): Promise<readonly BlobId[]>
  /** Those that {@link beginRemoval} would return now. */
  removable(blobs: readonly BlobId[], usedBefore: number, signal: AbortSignal): Promise<readonly BlobId[]>
  /** They are gone from the store: so is who may read them. */
  endRemoval(blobs: readonly BlobId[], usedBefore: number, signal: AbortSignal): Promise<void>
  /** Begins those removals anew that began before the given time and did not end: whoever began them is dead. */
  takeOverRemovals(begunBefore: number, signal: AbortSignal): Promise<readonly BlobId[]>
}

export interface RepositoryRow {
  readonly name: string
  readonly owner: string
  /** Absolute path of a local repository, or a URL. */
  readonly location: string
  readonly createdAt: number
}

export interface RepositoryCatalog {
  /** Registers or finds: the same location gives the same name; a taken name gets a number behind it. */
  add(owner: string, name: string, location: string, now: number, signal: AbortSignal): Promise<RepositoryRow>
  /** @throws TuttiError `not_found`. */
  get(owner: string, name: string, signal: AbortSignal): Promise<RepositoryRow>
  list(owner: string, signal: AbortSignal): Promise<readonly RepositoryRow[]>
  /** For sweeps, across owners: the locations of all repositories that an agent or ensemble works on or has worked on. */
  listInUse(signal: AbortSignal): Promise<readonly string[]>
}

/** What is known about agents, ensembles and what they made; cut by aggregate (design §6). Every row has an owner. */
export interface Catalog {
  readonly agents: AgentCatalog
  readonly ensembles: EnsembleCatalog
  readonly attempts: AttemptCatalog
  readonly pullRequests: PullRequestCatalog
  readonly leases: LeaseCatalog
  readonly idempotency: IdempotencyCatalog
  readonly blobRefs: BlobRefCatalog
  readonly repositories: RepositoryCatalog
}
