import type { CaptureSink, CapturedChange, FileState } from '@tutti/agent-server'
import type { BlobStore } from '@tutti/blob-store'
import { TuttiError, type BlobId, type CrashPoint } from '@tutti/core'
import type { OpenPack, TreeChange } from '@tutti/git'
import type { RunEvent } from '@tutti/protocol'
import { changedFile, changePath, isInNoCommit, pathKey } from '@tutti/workspace'
import { createBlobBatch, maxBatched, type BlobBatch } from './blob-batch.ts'
import { fileChange, pathFields, type FileSync, type RecoveredGitState } from '@tutti/workspace/log'
import { treeChange } from './tree-change.ts'
import { whatToDo } from './unwritten.ts'

/** What captures have found since the last checkpoint. */
export interface WorkspaceTracker {
  /**
   * Takes one capture: content into the store as it comes, and all its events together once it is whole. So an event never names a
   * missing object (design §8), and the log never has half of a capture.
   */
  sink(): CaptureSink
  /**
   * The same for the capture behind a sync, which logs together with it that the sandbox has these changes of the user's, but for what could
   * not be written: that stays in `unwritten` and is told.
   */
  syncSink(synced: readonly FileSync[], unwritten: Map<string, string>): CaptureSink
  /** What the next checkpoint commit is made of: the newest state of each path that changed since the last one. */
  treeChanges(): readonly TreeChange[]
  /** That of the newest capture, or of what was recovered. */
  manifestDigest(): string
  /** Something has changed since the last checkpoint that a commit can have. */
  hasChanges(): boolean
  /** The agent has committed since the last checkpoint. */
  hasCommits(): boolean
  /** A checkpoint holds everything up to now. */
  checkpointed(): void
}

export interface WorkspaceTrackerDeps {
  /** For the contents of files, which may go when nobody needs them any more. */
  readonly blobs: BlobStore
  /** For what the agent's own repository has: commits are kept for ever. */
  readonly packs: BlobStore
  readonly incarnation: number
  /** Makes events durable together. */
  readonly write: (...events: readonly RunEvent[]) => Promise<void>
  /** @throws TuttiError `failed_precondition` for a pack that git finds unsafe or cannot read. */
  readonly checkPack: (pack: OpenPack, onto: readonly OpenPack[], signal: AbortSignal) => Promise<void>
  readonly crashPoint: CrashPoint
  readonly signal: AbortSignal
  /** Aborts when the sandbox is gone: what it had begun to hand over is of no use then. What it has handed over stays. */
  readonly gone?: AbortSignal
  /** Changes that were captured before and are in no checkpoint yet. */
  readonly initial: readonly CapturedChange[]
  /** Of the workspace with those. */
  readonly manifestDigest: string
  /** The agent's own repository, as it was captured before. */
  readonly git?: RecoveredGitState | undefined
}

type Failed = Extract<RunEvent, { type: 'file_sync_failed' }>

export function createWorkspaceTracker(deps: WorkspaceTrackerDeps): WorkspaceTracker {
  const { blobs, packs: packStore, incarnation, write, checkPack, crashPoint, signal } = deps
  const taking = deps.gone ? AbortSignal.any([signal, deps.gone]) : signal
  const changes = new Map<string, CapturedChange>(
    deps.initial.map((change) => [pathKey(changePath(change)), change]),
  )
  let manifestDigest = deps.manifestDigest
  let hasChanges = deps.initial.some((change) => !isInNoCommit(change))
  let hasCommits = false
  const packsOf = new Map(deps.git && [[deps.git.commit, deps.git.packs]])

  const store = async (
    state: FileState,
    content: AsyncIterable<Uint8Array> | undefined,
    batch: BlobBatch,
    ahead: ReadonlySet<BlobId>,
  ) => {
    if (!content && ahead.has(state.hash)) return
    if (!content) throw new TuttiError('internal', 'A captured file came without its content.')
    if (state.size <= maxBatched) return batch.add(state.hash, Buffer.concat(await Array.fromAsync(content)))
    const id = await blobs.put(content, taking)
    if (id !== state.hash)
      throw new TuttiError('data_loss', 'A captured file does not have the hash that was announced.')
  }
  const openOf =
    (id: BlobId): OpenPack =>
    () =>
      packStore.stream(id, taking)
  const storePack = async (
    pack: AsyncIterable<Uint8Array>,
    onto: readonly BlobId[],
  ): Promise<BlobId | undefined> => {
    const id = await packStore.put(pack, taking)
    try {
      await checkPack(openOf(id), onto.map(openOf), taking)
      return id
    } catch (error) {
      if (error instanceof TuttiError && error.code === 'failed_precondition') return undefined
      throw error
    }
  }

  /** What the log has of what could not be written in this sandbox, by command. */
  const told = new Map<string, string>()
  const failures = (refused: readonly FileSync[], unwritten: ReadonlyMap<string, string>) => {
    // Of a path the newest change alone was tried.
    const tried = new Map(refused.map((sync) => [pathKey(changePath(sync.change)), sync]))
    return [...tried].flatMap(([key, { commandId, change }]): Failed[] => {
      const code = unwritten.get(key)!
      if (told.get(commandId) === code) return []
      const path = pathFields(changePath(change))
      return [{ type: 'file_sync_failed', incarnation, commandId, ...path, code, detail: whatToDo(code) }]
    })
  }

  const sinkOf = (synced: readonly FileSync[], unwritten = new Map<string, string>()): CaptureSink => {
    const batch = createBlobBatch(blobs, taking)
    const ahead = new Set<BlobId>()
    const captured: CapturedChange[] = []
    const others: RunEvent[] = []
    let commits = 0
    let state: RecoveredGitState | undefined
    return {
      async content(content) {
        ahead.add(await blobs.put(content, taking))
      },
      async change(change, content) {
        const file = changedFile(change)
        if (file) await store(file, content, batch, ahead)
        captured.push(change)
      },
      async skipped(path, reason, size) {
        others.push({
          type: 'file_skipped',
          incarnation,
          ...pathFields(path),
          reason,
          ...(size !== undefined && { size }),
        })
      },
      unwritten: (path, code) => void unwritten.set(pathKey(path), code),
      async gitState({ commit, onto, head, branch, commits: made }, bytes) {
        const earlier = packsOf.get(onto ?? '') ?? []
        const pack = await crashPoint('capture.git_state', () => storePack(bytes, earlier))
        if (pack === undefined) {
          others.push({ type: 'file_skipped', incarnation, path: '.git', reason: 'unsafe_object' })
          return false
        }
        others.push({
          type: 'git_state',
          incarnation,
          commit,
          pack,
          ...(onto !== undefined && { onto }),
          ...(head !== undefined && { head }),
          ...(branch !== undefined && { branch }),
        })
        for (const { sha, message } of made) others.push({ type: 'git_commit', sha, message })
        commits = made.length
        state = { commit, packs: [...earlier, pack] }
        return true
      },
      async committed(summary) {
        await crashPoint('capture.contents', () => batch.stored())
        const isWritten = ({ change }: FileSync) => !unwritten.has(pathKey(changePath(change)))
        const written = synced.filter(isWritten)
        const acks = written.map(({ commandId }): RunEvent => ({ type: 'ack', commandId }))
        const failed = failures(
          synced.filter((sync) => !isWritten(sync)),
          unwritten,
        )
        const changed = captured.map((change) => fileChange(change, incarnation))
        const events = [...acks, ...failed, ...changed, ...others]
        if (captured.length > 0 || written.length > 0) {
          const { manifestDigest: digest, entries } = summary
          events.push({ type: 'workspace_captured', incarnation, manifestDigest: digest, entries })
        }
        if (events.length > 0) await crashPoint('capture.events', () => write(...events))
        for (const { commandId, code } of failed) told.set(commandId, code)
        for (const change of [...written.map((sync) => sync.change), ...captured])
          changes.set(pathKey(changePath(change)), change)
        manifestDigest = summary.manifestDigest
        if (state) packsOf.set(state.commit, state.packs)
        hasChanges ||= captured.length > 0 || written.length > 0
        hasCommits ||= commits > 0
      },
    }
  }

  return {
    sink: () => sinkOf([]),
    syncSink: sinkOf,
    treeChanges: () => [...changes.values()].map((change) => treeChange(change, blobs, signal)),
    manifestDigest: () => manifestDigest,
    hasChanges: () => hasChanges,
    hasCommits: () => hasCommits,
    checkpointed() {
      changes.clear()
      hasChanges = false
      hasCommits = false
    },
  }
}
