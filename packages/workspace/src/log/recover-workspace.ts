import type { AgentId, BlobId } from '@tutti/core'
import type { FileSkipReason, RecoveryEvent, RunEvent } from '@tutti/protocol'
import type { EventLog } from '@tutti/store'
import { changePath, isInNoCommit, type CapturedChange } from '../file-state.ts'
import { foldChanges } from '../fold-changes.ts'
import { pathKey } from '../path-key.ts'
import { changeOfEvent, eventPath, type EventPath } from './file-events.ts'
import { readOpenCalls, type OpenCall } from './open-calls.ts'
import { readEvents } from './read-events.ts'

/** The newest acknowledged state of a workspace: a commit, and the changes after it (seed 003). */
export interface RecoveredWorkspace {
  /** The newest checkpoint that was not passed over; undefined when there was none. */
  readonly commit: string | undefined
  /** All checkpoints that were not passed over, the newest first; each once. */
  readonly checkpoints: readonly string[]
  /** Latest state of each path that changed after it, and what no commit has (empty folders, ignored files); in an order that can be applied. */
  readonly changes: readonly CapturedChange[]
  /** What the whole workspace must be then; undefined when the log does not say. */
  readonly manifestDigest: string | undefined
  /** When the newest capture was taken; milliseconds since the epoch. */
  readonly capturedAt: number | undefined
  /** What the user has changed and no sandbox has got yet, in log order. It comes on top of all that. */
  readonly pending: readonly FileSync[]
  /** Paths that the user has changed in a sandbox, and no turn that began after it has ended: the agent may not know. */
  readonly synced: readonly Uint8Array[]
  /** The agent's own repository; undefined while it is as it was made. */
  readonly git: RecoveredGitState | undefined
  /** The event that told of it. */
  readonly gitEvent: Extract<RunEvent, { type: 'git_state' }> | undefined
  /** What the workspace had and the log has not. */
  readonly missing: RecoveryEvent['missing']
  /** How the sandbox before ended; undefined when there was none. */
  readonly before: RecoveryEvent['reason'] | undefined
  /** What the agent exported last of its session. */
  readonly exported: BlobId | undefined
  /** Somebody had the workspace put back, and no turn that began after it has ended: the agent may not know. */
  readonly restored: Restored | undefined
  /** What of it is in the log has no end: it was cut off, and the rest is not put back. */
  readonly restoring: Restored | undefined
  /** Tool calls that were under way when the last sandbox was lost. */
  readonly openCalls: readonly OpenCall[]
}

/** Who asked for it, and the offset whose workspace it is. */
export type Restored = Pick<Extract<RunEvent, { type: 'workspace_restored' }>, 'requestId' | 'atOffset'>
/** One change of the user's, and the command that brought it. */
export interface FileSync {
  readonly commandId: string
  readonly change: CapturedChange
}

export interface RecoveredGitState {
  readonly commit: string
  /** In the order in which they need one another. */
  readonly packs: readonly BlobId[]
}

const types = [
  'sandbox',
  'checkpoint',
  'file_change',
  'file_sync',
  'ack',
  'turn_started',
  'file_skipped',
  'workspace_captured',
  'git_state',
  'session_saved',
  'workspace_restored',
  'turn_ended',
] as const

/**
 * Reads what the log says of the workspace, and nothing else of it: the latest checkpoint, and every later `file_change` folded to one state
 * for each path. Records of other types may be damaged all the same: `checkLog` looks at those that are not archived, archiving has looked at
 * the others. Call it when nobody else can write the log as a sandbox any more.
 *
 * @param until a position of the log: the workspace as it was then
 * @param passedOver checkpoints that cannot be had: what they have is folded from the changes
 */
export async function recoverWorkspace(
  eventLog: EventLog,
  bcId: AgentId,
  signal: AbortSignal,
  until?: number,
  passedOver: ReadonlySet<string> = new Set(),
): Promise<RecoveredWorkspace> {
  const changes = new Map<string, CapturedChange>()
  const states = createGitStates()
  // By their bytes: neither the text nor its base64 alone tells all paths apart.
  const missing = new Map<string, RecoveryEvent['missing'][number]>()
  const pending = new Map<string, CapturedChange>()
  const synced = new Map<string, Uint8Array>()
  /** What there was to tell when the turn began. */
  let given:
    | { readonly synced: ReadonlyMap<string, Uint8Array>; readonly restored: Restored | undefined }
    | undefined
  const checkpoints = new Set<string>()
  let manifestDigest: string | undefined
  let hasCaptures = false
  let capturedAt: number | undefined
  let exported: BlobId | undefined
  let ready: number | undefined
  let before: RecoveryEvent['reason'] | undefined
  let restored: Restored | undefined
  let restoring: Restored | undefined
  /** Where the newest turn began: no call outlives its turn. */
  let turn = 0
  const options = { unchecked: true, ...(until !== undefined && { until }) }
  for await (const { event, sequence, at } of readEvents(eventLog, bcId, types, signal, options)) {
    switch (event.type) {
      case 'sandbox':
        if (event.state === 'ready') {
          ready = event.incarnation
          before = 'lost'
          missing.clear()
          if (event.manifestDigest) {
            manifestDigest = event.manifestDigest
            hasCaptures = true
          }
        } else if (event.incarnation === ready && event.state === 'destroyed')
          before = event.reason === 'expires' ? 'expires' : 'released'
        break
      case 'checkpoint':
        restoring = undefined
        // Those of before captures were whole had what the setup command made as well.
        manifestDigest = hasCaptures ? event.manifestDigest || undefined : undefined
        if (passedOver.has(event.commit)) break
        checkpoints.delete(event.commit)
        checkpoints.add(event.commit)
        for (const [key, change] of changes) if (!isInNoCommit(change)) changes.delete(key)
        break
      case 'file_change': {
        const change = changeOfEvent(event)
        const key = pathKey(changePath(change))
        changes.set(key, change)
        missing.delete(key)
        // Until the capture that it belongs to has ended.
        manifestDigest = undefined
        break
      }
      case 'file_sync':
        pending.set(event.commandId, changeOfEvent(event))
        break
      case 'ack': {
        // From here on the sandbox has it: what it captured before was made without.
        const change = pending.get(event.commandId)
        if (!change) break
        pending.delete(event.commandId)
        const path = changePath(change)
        const key = pathKey(path)
        changes.set(key, change)
        missing.delete(key)
        synced.set(key, path)
        manifestDigest = undefined
        break
      }
      case 'turn_started':
        turn = sequence
        given = { synced: new Map(synced), restored }
        break
      case 'workspace_captured':
        hasCaptures = true
        capturedAt = at
        manifestDigest = event.manifestDigest
        break
      case 'file_skipped':
        missing.set(keyOf(event), missingOf(event))
        break
      case 'git_state':
        states.take(event)
        for (const path of missing.keys()) if (/^\.git(?:\/|$)/.test(path)) missing.delete(path)
        break
      case 'session_saved':
        exported = event.blobId
        break
      case 'workspace_restored':
        restored = { requestId: event.requestId, atOffset: event.atOffset }
        restoring = restored
        states.reset()
        break
      case 'turn_ended':
        // Not before: until then a lost sandbox may take with it that the agent was told.
        for (const [key, path] of given?.synced ?? []) if (synced.get(key) === path) synced.delete(key)
        if (given?.restored === restored) restored = undefined
        given = undefined
        break
    }
  }
  const git = states.newest()
  const folded = foldChanges(changes.values())
  const newestFirst = [...checkpoints].reverse()
  return {
    commit: newestFirst[0],
    checkpoints: newestFirst,
    changes: folded,
    manifestDigest,
    capturedAt,
    pending: [...pending].map(([commandId, change]) => ({ commandId, change })),
    synced: [...synced.values()],
    git,
    gitEvent: states.event(),
    missing: [...missing.values()],
    before,
    exported,
    restored,
    restoring,
    openCalls: await readOpenCalls(eventLog, bcId, signal, { ...options, from: turn }),
  }
}

const keyOf = (event: EventPath): string => pathKey(eventPath(event))

const missingOf = ({ path, pathB64, reason }: EventPath & { readonly reason: FileSkipReason }) => ({
  path,
  ...(pathB64 !== undefined && { pathB64 }),
  reason,
})

/** States of the agent's repository, each with the one that its pack needs. A state may come back, so its commit alone names no pack. */
function createGitStates() {
  interface Entry {
    readonly event: Extract<RunEvent, { type: 'git_state' }>
    readonly before: Entry | undefined
  }
  const newestOf = new Map<string, Entry>()
  let newest: Entry | undefined
  return {
    take(event: Entry['event']) {
      newest = { event, before: event.onto === undefined ? undefined : newestOf.get(event.onto) }
      newestOf.set(event.commit, newest)
    },
    /** The repository is as it was made; a later state may still build on an earlier pack. */
    reset() {
      newest = undefined
    },
    event: () => newest?.event,
    newest(): RecoveredGitState | undefined {
      if (!newest) return undefined
      const packs: BlobId[] = []
      for (let at: Entry | undefined = newest; at; at = at.before) packs.unshift(at.event.pack)
      return { commit: newest.event.commit, packs }
    },
  }
}
