import type { AgentServer } from '@tutti/agent-server'
import { mirrorRefs, type AgentId } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import { changePath, foldChanges, pathKey, untilConflict } from '@tutti/workspace'
import type { FileSync } from '@tutti/workspace/log'
import type { CheckpointResult } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import type { KeepBase } from './keep-base.ts'
import { keepCheckpoint } from './keep-checkpoint.ts'
import { contentsFrom } from './contents-from.ts'
import { lostChanges } from './lost-content.ts'
import type { RunLogWriter } from './run-log-writer.ts'
import type { WorkspaceTracker } from './workspace-tracker.ts'

/** The workspace of one sandbox life, on its way into the stores, the log and the mirror. One capture or checkpoint at a time. */
export interface SessionWorkspace {
  /** The newest checkpoint, or what the workspace began from. */
  readonly commit: string
  /** Takes what has changed into the stores and the log. */
  capture(signal: AbortSignal): Promise<void>
  /**
   * Writes what the user has changed into the sandbox, behind a capture of what the agent has there, so that it stays retrievable; logs
   * that the sandbox has it, or why it cannot. What it could not have before is tried again with it.
   *
   * @returns what the sandbox has got
   */
  sync(synced: readonly FileSync[], signal: AbortSignal): Promise<readonly FileSync[]>
  /** The sandbox could not have something that the user has changed. */
  hasUnwritten(): boolean
  /** The same for what hints have told of. */
  captureHinted(signal: AbortSignal): Promise<void>
  /** Whether every path is what it was when it was captured last. */
  isAsCaptured(signal: AbortSignal): Promise<boolean>
  /** Takes what was captured since the last checkpoint into a commit of the mirror, built by the host (design §8). */
  checkpoint(turnId: string, signal: AbortSignal): Promise<CheckpointResult>
  /** A checkpoint, when the agent has committed since the last one or `intervalMs` milliseconds have passed. */
  checkpointWhenDue(turnId: string, intervalMs: number, signal: AbortSignal): Promise<void>
}

export interface SessionWorkspaceParts {
  readonly bcId: AgentId
  readonly incarnation: number
  readonly baseCommit: string
  /** The checkpoint that the workspace was made from, or the base. */
  readonly commit: string
  readonly server: AgentServer
  readonly mirror: Mirror
  readonly keepBase: KeepBase
  readonly log: RunLogWriter
  readonly tracker: WorkspaceTracker
}

type Deps = Pick<ActivityDeps, 'blobs' | 'catalog' | 'clock' | 'crashPoint' | 'eventLog'>

export function createSessionWorkspace(deps: Deps, parts: SessionWorkspaceParts): SessionWorkspace {
  const { bcId, incarnation, baseCommit, server, mirror, keepBase, log, tracker } = parts
  let commit = parts.commit
  let checkpointAt = deps.clock.monotonic()
  let queue: Promise<unknown> = Promise.resolve()

  /** Changes of the user's that the sandbox could not have. */
  let unwritten: readonly FileSync[] = []

  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = queue.then(work)
    queue = done.catch(() => undefined)
    return done
  }

  const capture = async (signal: AbortSignal) => void (await server.capture(tracker.sink(), signal))

  /** @returns path keys of what the sandbox cannot have, each with the reason */
  async function write(synced: readonly FileSync[], signal: AbortSignal): Promise<Map<string, string>> {
    const lost = new Map<string, string>()
    const changes = foldChanges(synced.map(({ change }) => change))
    for (;;) {
      const unwrittenNow = new Map(lost)
      const request = {
        changes: changes.filter((change) => !lost.has(pathKey(changePath(change)))),
        ...contentsFrom(deps.blobs, signal),
      }
      try {
        await server.sync(request, tracker.syncSink(synced, unwrittenNow), signal)
        return unwrittenNow
      } catch (thrown) {
        // One content that is gone for good holds up no other.
        const gone = await lostChanges(thrown, request.changes, deps.blobs, signal)
        if (gone.length === 0) throw thrown
        for (const change of gone) lost.set(pathKey(changePath(change)), 'lost')
      }
    }
  }

  async function checkpoint(turnId: string, signal: AbortSignal): Promise<CheckpointResult> {
    await log.flush()
    // A commit names no incarnation, and its ref would be moved back: whoever was replaced stops here.
    await deps.eventLog.expected(bcId, 'sandbox', incarnation, signal)
    const made = await deps.crashPoint('turn.checkpoint', () =>
      mirror.commit(
        {
          parent: commit,
          changes: tracker.treeChanges(),
          ref: mirrorRefs.checkpoint(bcId),
          message: `Checkpoint of ${bcId}\n\nTurn: ${turnId}`,
          atMs: deps.clock.now(),
        },
        signal,
      ),
    )
    // Most times it is there, or on its way; the event says whether all that the commit needs is.
    keepBase(mirror, baseCommit)
    const [filesChanged, kept] = await Promise.all([
      mirror.countChanges(baseCommit, made.commit, signal),
      keepCheckpoint(deps, mirror, { commit: made.commit, onto: commit, base: baseCommit }, signal),
    ])
    const logSequence = await deps.crashPoint('turn.checkpoint_event', async () => {
      const manifestDigest = tracker.manifestDigest()
      await log.write({
        type: 'checkpoint',
        incarnation,
        turnId,
        ...made,
        filesChanged,
        manifestDigest,
        ...(kept && { kept }),
      })
      return log.flush()
    })
    tracker.checkpointed()
    commit = made.commit
    checkpointAt = deps.clock.monotonic()
    await deps.catalog.agents.project(bcId, { logSequence, commit, filesChanged }, signal)
    return { commit, filesChanged }
  }

  return {
    get commit() {
      return commit
    },
    capture: (signal) => inTurn(() => capture(signal)),
    sync: (synced, signal) =>
      inTurn(async () => {
        const all = [...unwritten, ...synced]
        if (all.length === 0) return []
        await capture(signal)
        const refused = new Set<FileSync>()
        // One after the other, as they would have come to a living sandbox: a later one takes the place of an earlier one.
        for (const step of untilConflict(all, ({ change }) => change)) {
          const keys = await write(step, signal)
          for (const sync of step) if (keys.has(pathKey(changePath(sync.change)))) refused.add(sync)
        }
        await log.flush()
        unwritten = all.filter((sync) => refused.has(sync))
        return all.filter((sync) => !refused.has(sync))
      }),
    hasUnwritten: () => unwritten.length > 0,
    captureHinted: (signal) => inTurn(async () => void (await server.captureHinted(tracker.sink(), signal))),
    isAsCaptured: (signal) =>
      inTurn(async () => (await server.look(signal)).manifestDigest === tracker.manifestDigest()),
    checkpoint: (turnId, signal) => inTurn(() => checkpoint(turnId, signal)),
    checkpointWhenDue: (turnId, intervalMs, signal) =>
      inTurn(async () => {
        const isDue = deps.clock.monotonic() - checkpointAt >= intervalMs
        if (tracker.hasCommits() || (isDue && tracker.hasChanges())) await checkpoint(turnId, signal)
      }),
  }
}
